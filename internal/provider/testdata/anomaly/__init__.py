from .main import detect
