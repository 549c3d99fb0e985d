"""A TLS context, and what certificates it trusts."""
import ssl

context = ssl.create_default_context()
print(context.verify_mode.name, context.check_hostname, len(context.get_ca_certs()) > 0)
