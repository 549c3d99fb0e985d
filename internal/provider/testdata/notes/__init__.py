from . import shelf  # as packages of providers do
