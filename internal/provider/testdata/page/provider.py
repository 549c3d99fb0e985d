"""A provider that asks the page of Wegent as those before 2026 did."""

import asyncio
import uuid
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import BaseModel, Field

from app.chat_shell.skills import SkillToolContext, SkillToolProvider


class DrawInput(BaseModel):
    code: str = Field(..., description="what to draw")


class DrawTool(BaseTool):
    name: str = "draw"
    description: str = "Draws."
    args_schema: type[BaseModel] = DrawInput
    ws_emitter: Any = None
    task_id: int = 0

    def _run(self, code: str) -> str:
        raise NotImplementedError("only asynchronous")

    async def _arun(self, code: str) -> dict:
        from app.chat_shell.tools.pending_requests import get_pending_request_registry

        if not self.ws_emitter:
            return {"success": False, "error": "no emitter"}
        await self.ws_emitter.emit_tool_call(tool_name="draw", status="running")
        registry, request_id = await get_pending_request_registry(), str(uuid.uuid4())
        future = await registry.register(request_id=request_id, skill_name="page", action="render", payload={"code": code}, timeout_seconds=7.0)
        await self.ws_emitter.emit_skill_request(task_id=self.task_id, request_id=request_id, skill_name="page", action="render", data={"code": code})
        return await asyncio.wait_for(future, timeout=60)


class ModelTool(BaseTool):
    name: str = "model"
    description: str = "Uses a part of Wegent that is not here."

    async def _arun(self) -> str:
        from app.chat_shell.models import LangChainModelFactory

        return str(LangChainModelFactory.create_from_config({}))


class SocketTool(BaseTool):
    name: str = "socket"
    description: str = "Uses a part of the emitter that is not here."
    ws_emitter: Any = None

    async def _arun(self) -> str:
        return str(await self.ws_emitter.sio.call("ask"))


class PageProvider(SkillToolProvider):
    @property
    def provider_name(self) -> str:
        return "page"

    @property
    def supported_tools(self) -> list:
        return ["draw", "model", "socket"]

    def create_tool(self, tool_name: str, context: SkillToolContext, tool_config=None) -> BaseTool:
        if tool_name == "model":
            return ModelTool()
        if tool_name == "socket":
            return SocketTool(ws_emitter=context.ws_emitter)
        return DrawTool(ws_emitter=context.ws_emitter, task_id=context.task_id)
