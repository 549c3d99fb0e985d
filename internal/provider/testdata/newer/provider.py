class Newer:
    provider_name = "newer"
    later = a syntax of the future
