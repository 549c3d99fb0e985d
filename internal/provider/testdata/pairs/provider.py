from langchain_core.tools import BaseTool, tool

PAIR = ("the content", {"rows": [1, 2]})


class Declared(BaseTool):
    name: str = "declared"
    description: str = "Returns content and an artifact."
    response_format: str = "content_and_artifact"

    def _run(self):
        return PAIR


class Asynchronous(Declared):
    async def _arun(self):
        return PAIR


@tool(response_format="content_and_artifact")
def decorated():
    """Returns content and an artifact."""
    return PAIR


class Classless:
    description = "Returns content and an artifact."
    response_format = "content_and_artifact"

    def _run(self):
        return PAIR


class Undeclared(BaseTool):
    name: str = "undeclared"
    description: str = "Returns a pair."

    def _run(self):
        return PAIR


class PairsProvider:
    provider_name = "pairs"
    supported_tools = ()

    def create_tool(self, name, context, config):
        return decorated if name == "decorated" else globals()[name.capitalize()]()
