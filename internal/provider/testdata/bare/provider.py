"""Tools as classes of their own, and what is no tool."""

from pydantic import BaseModel, Field
from langchain_core.tools import BaseTool


class BarInput(BaseModel):
    values: list[int] = Field(description="one for each bar")
    title: str = "bars"


class Bar:
    display_name = "Bar chart"
    description = "Draws bars."
    args_schema = BarInput

    def _run(self, values, title):
        return "%s: %s" % (title, max(values))


class Later:
    description = "Takes its time."
    args_schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}

    async def _arun(self, x):
        return x + 1


class Both:
    description = "Runs, and not later."

    def _run(self, x: int):
        return x + 2

    async def _arun(self, x: int):
        raise NotImplementedError("only at once")


class Untyped:
    description = "Has no schema."

    def _run(self, x: int, y: int = 3):
        return x * y


class Anything:
    description = "Takes any names."

    def _run(self, **names):
        return sorted(names)


class Fails:
    description = "Fails."

    def _run(self):
        raise KeyError("no such bar")


class Mistaken:
    description = "Has a schema for something else."
    args_schema = BarInput

    def _run(self, colour):
        return colour


class Invalid:
    description = "Makes something invalid."

    def _run(self):
        return BarInput(values="none")


class Thing:
    description = "Is no tool."
    args_schema = BarInput


class Idle(BaseTool):
    name: str = "idle"
    description: str = "Does nothing."


def function(x: int) -> int:
    return x * 2


class BareProvider:
    provider_name = "bare"
    supported_tools = ()

    def create_tool(self, name, context, config):
        if name == "function":
            return function
        if name == "forgotten":
            return Bar
        made = globals().get(name.capitalize())
        return made and made()
