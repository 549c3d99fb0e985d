"""A provider in the style of Wegent."""

import asyncio
import os
from typing import Any, Dict, List, Literal, Optional

from langchain_core.callbacks import CallbackManagerForToolRun
from langchain_core.tools import BaseTool, StructuredTool, tool
from pydantic import BaseModel, Field

from chat_shell.skills import SkillToolContext, SkillToolProvider
from shared.utils.things import thing

from . import shelf

print("this is printed while it loads")


class Tag(BaseModel):
    name: str
    weight: int = Field(default=1, ge=1, le=9)


class AddInput(BaseModel):
    text: str = Field(..., description="what to keep", min_length=1)
    tags: List[Tag] = Field(default_factory=list)
    mood: Literal["good", "bad"] = "good"
    at: Optional[int] = None


class AddTool(BaseTool):
    name: str = "add"
    display_name: str = "Add a note"
    description: str = "Adds a note."
    args_schema: type[BaseModel] = AddInput
    shout: bool = False
    limit: int = 0

    def _run(self, text: str, tags: list, mood: str, at: Optional[int] = None, run_manager: CallbackManagerForToolRun | None = None) -> str:
        print("adding", text)
        os.system("echo a program prints too")
        shelf.NOTES.append(text)
        return "%s %s %s %s %s" % (text.upper() if self.shout else text, mood, [(t.name, t.weight) for t in tags], self.limit, len(shelf.NOTES))


class SlowTool(BaseTool):
    name: str = "slow"
    description: str = "Waits for another call."

    def _run(self, **_):
        raise NotImplementedError("only asynchronous")

    async def _arun(self, wait: bool = False, run_manager: Optional[CallbackManagerForToolRun] = None) -> Dict[str, Any]:
        global gate
        if wait:
            gate = asyncio.Event()
            await gate.wait()
        else:
            while "gate" not in globals():
                await asyncio.sleep(0.01)
            gate.set()
        return {"waited": wait}


class FailTool(BaseTool):
    name: str = "fail"
    description: str = "Fails."

    def _run(self) -> str:
        shelf.fail()


class NotesProvider(SkillToolProvider):
    @property
    def provider_name(self) -> str:
        return "notes"

    @property
    def supported_tools(self) -> list[str]:
        return ["add", "slow", "about", "fail", "question", "structured", "decorated", "explodes"]

    def validate_config(self, tool_config):
        raise AssertionError("nobody calls this")

    def create_tool(self, tool_name: str, context: SkillToolContext, tool_config: Optional[dict] = None) -> BaseTool:
        if tool_name == "add":
            return AddTool(shout=tool_config["shout"], limit=tool_config["limit"])
        if tool_name == "slow":
            return SlowTool()
        if tool_name == "fail":
            return FailTool()
        if tool_name == "about":
            def about() -> dict:
                """Says for whom it is."""
                return {"person": context.person, "session": context.session, "user": context.user_name, "config": context.config,
                        "tokens": context.auth_token + context.skill_identity_token, "get": context.get_config("name"), "task": context.task_id > 0}
            return StructuredTool.from_function(about)
        if tool_name == "question":
            class Question(BaseTool):
                name: str = "question"
                description: str = "Asks."

                def _run(self, again: bool = False) -> str:
                    answer = context.ask("How many?", {"type": "object", "properties": {"n": {"type": "integer"}}})
                    return "%s %s" % (answer["action"], answer.get("content"))
            return Question()
        if tool_name == "structured":
            async def count(words: List[str], times: float = 1.5) -> dict:
                """Counts."""
                return {"count": len(words) * times}
            return StructuredTool.from_function(coroutine=count, name="structured")
        if tool_name == "decorated":
            @tool
            def decorated(x: int) -> int:
                """Doubles."""
                return x * 2
            return decorated
        thing()
