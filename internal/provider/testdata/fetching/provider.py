import httpx


class Download:
    description = "Downloads a page."

    def __init__(self, token):
        self.token = token

    async def _arun(self, url: str) -> str:
        if not self.token:
            return "no token"
        async with httpx.AsyncClient() as client:
            return (await client.get(url)).text


class Fetching:
    provider_name = "fetching"
    supported_tools = ["download"]

    def create_tool(self, name, context, config):
        return Download(context.auth_token)
