"""Speaks MCP on standard input and output for a tool provider written in Python, and calls functions of skills.

Loadout runs this file in a sandbox. It is not part of the skill, and needs only
the standard library of Python 3.9 or newer. The file provider.json beside it says
what to load. Standard output is reserved for the protocol, so text that the
provider prints goes to standard error.
"""

import os
import sys

SKILL = os.environ.get("LOADOUT_SKILL", "/skill")
sys.path[:] = [p for p in sys.path[1:] if p.rstrip("/") != SKILL]  # the skill comes last, so that it shadows no module

import asyncio
import concurrent.futures
import copy
import datetime
import enum
import hashlib
import importlib
import importlib.util
import inspect
import json
import math
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import traceback
import types
import typing

HERE = os.path.dirname(os.path.abspath(__file__))
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MAX_LINE = 16 << 20
MAX_CALLS = 16
ASK_SECONDS = 600


def warn(text):
    print("loadout: " + text, file=sys.stderr, flush=True)


# --- A model base class, used if pydantic is not installed -------------------------

UNSET = object()


class OrMeta(type):
    """Lets `Class | None` be written in annotations on Python 3.9 too."""

    def __or__(cls, other):
        return typing.Union[cls, other]

    def __ror__(cls, other):
        return typing.Union[other, cls]


class ValidationError(ValueError):
    """Lists the problems with a value, one per line."""

    def __init__(self, title, problems):
        self.title, self.problems = title, problems
        super().__init__("%d problem(s) with %s\n%s" % (len(problems), title, "\n".join("%s: %s" % (at or "value", why) for at, why in problems)))

    def errors(self, **_):
        return [{"loc": tuple(at.split(".")), "msg": why, "type": "value_error"} for at, why in self.problems]

    def error_count(self):
        return len(self.problems)


class FieldInfo:
    def __init__(self, default=UNSET, default_factory=None, **extra):
        self.default = UNSET if default is ... else default
        self.default_factory = default_factory
        self.description = extra.pop("description", None)
        self.alias = extra.pop("alias", None)
        self.extra = extra
        self.annotation = typing.Any

    def is_required(self):
        return self.default is UNSET and self.default_factory is None

    def get_default(self, **_):
        return self.default_factory() if self.default_factory else copy.deepcopy(self.default)


class PrivateInfo(FieldInfo):
    pass


def Field(default=..., **kw):
    return FieldInfo(default, **kw)


def PrivateAttr(default=None, default_factory=None, **_):
    return PrivateInfo(default, default_factory)


class Check:
    """A validator function with its mode and fields."""

    def __init__(self, fields, mode, function):
        self.fields, self.mode, self.function = fields, mode, function

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, obj, owner):
        f = self.function
        return f.__get__(obj, owner) if hasattr(f, "__get__") else f

    def run(self, owner, *args):
        f = self.function
        if isinstance(f, (classmethod, staticmethod)):
            return call_with(f.__get__(None, owner), args)
        return call_with(f, (owner,) + args)


def call_with(f, args):
    """Calls f with the first arguments of args, as many as it accepts."""
    try:
        n = len([p for p in inspect.signature(f).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)])
    except (TypeError, ValueError):
        n = len(args)
    return f(*args[:n])


def field_validator(*fields, mode="after", pre=False, **_):
    return lambda f: Check(fields, "before" if pre else mode, f)


def model_validator(*args, mode="after", pre=False, **_):
    if args and callable(args[0]):
        return Check((), "root", args[0])
    return lambda f: Check((), "model_before" if pre or mode == "before" else "model_after", f)


class classproperty:
    def __init__(self, f):
        self.f = f

    def __get__(self, obj, owner):
        return self.f(owner)


def fields_of(cls):
    """Returns the fields of a model by name, those of its base classes first."""
    if "_loadout_fields" in vars(cls):
        return vars(cls)["_loadout_fields"]
    found = {}
    for base in reversed(cls.__mro__):
        if base in (object, Model) or not isinstance(base, type):
            continue
        raw = vars(base).get("__annotations__")
        if raw is None:
            raw = getattr(base, "__annotations__", {}) if sys.version_info >= (3, 14) else {}
        hints = hints_of(base)
        for name in raw:
            tp = hints.get(name, typing.Any)
            if name.startswith("_") or typing.get_origin(tp) is typing.ClassVar or tp is typing.ClassVar:
                continue
            default = vars(base).get(name, UNSET)
            info = None
            if typing.get_origin(tp) is typing.Annotated:
                for extra in typing.get_args(tp)[1:]:
                    if isinstance(extra, FieldInfo):
                        info = copy.copy(extra)
                tp = typing.get_args(tp)[0]
            if isinstance(default, FieldInfo):
                info = copy.copy(default)
            elif default is not UNSET:
                info = info or FieldInfo()
                info.default = default
            info = info or FieldInfo()
            info.annotation = tp
            found[name] = info
        for name, value in vars(base).items():  # a new default of an inherited field
            if name in found and name not in raw and not isinstance(value, (FieldInfo, Check, property, types.FunctionType)):
                found[name] = copy.copy(found[name])
                found[name].default, found[name].default_factory = value, None
    cls._loadout_fields = found
    return found


def hints_of(owner):
    """Returns the types in the annotations of a class or function.

    The type of an annotation that cannot be evaluated is Any. For example, its module may be imported only if TYPE_CHECKING."""
    try:
        return typing.get_type_hints(owner, include_extras=True)
    except Exception:
        pass
    hints, names = {}, getattr(sys.modules.get(getattr(owner, "__module__", None)), "__dict__", {})
    for name, annotation in getattr(owner, "__annotations__", {}).items():
        try:
            hints.update(typing.get_type_hints(types.SimpleNamespace(__annotations__={name: annotation}), names, include_extras=True))
        except Exception:
            hints[name] = typing.Any
    return hints


def checks_of(cls):
    seen = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, Check):
                seen[name] = value
    return seen.values()


class Model(metaclass=OrMeta):
    """Implements the part of pydantic.BaseModel that providers use."""

    _loadout_extra = False

    def __init__(self, **data):
        cls, problems, values = type(self), [], {}
        for c in checks_of(cls):
            if c.mode == "model_before":
                data = c.run(cls, data)
        for name, info in fields_of(cls).items():
            key = info.alias if info.alias in data else name
            if key in data:
                before = len(problems)
                value = data[key]
                for c in checks_of(cls):
                    if c.mode == "before" and name in c.fields:
                        value = attempt(c, cls, value, name, problems)
                value = convert(info.annotation, value, name, problems, info.extra)
                for c in checks_of(cls):
                    if c.mode == "after" and name in c.fields and len(problems) == before:
                        value = attempt(c, cls, value, name, problems)
                values[name] = value
            elif info.is_required():
                problems.append((name, "is missing"))
            else:
                values[name] = info.get_default()
        if problems:
            raise ValidationError(cls.__name__, problems)
        for name, value in values.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "model_fields_set", {n for n in fields_of(cls) if n in data})
        if self._loadout_extra or (getattr(cls, "model_config", None) or {}).get("extra") == "allow":
            for name, value in data.items():
                if name not in values:
                    object.__setattr__(self, name, value)
        for base in reversed(cls.__mro__):
            for name, value in vars(base).items():
                if isinstance(value, PrivateInfo):
                    object.__setattr__(self, name, value.get_default())
        for c in checks_of(cls):
            if c.mode == "model_after":
                c.function(self)
        self.model_post_init(None)

    def model_post_init(self, _context):
        pass

    @classmethod
    def model_validate(cls, value, **_):
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict):
            raise ValidationError(cls.__name__, [("", "is not an object")])
        return cls(**value)

    parse_obj = model_validate

    @classmethod
    def model_validate_json(cls, text, **_):
        return cls.model_validate(json.loads(text))

    @classmethod
    def model_construct(cls, **values):
        self = cls.__new__(cls)
        for name, info in fields_of(cls).items():
            object.__setattr__(self, name, values.get(name, None if info.is_required() else info.get_default()))
        return self

    def model_dump(self, exclude_none=False, exclude=None, include=None, by_alias=False, **_):
        out = {}
        for name, info in fields_of(type(self)).items():
            value = getattr(self, name)
            if exclude_none and value is None or name in (exclude or ()) or include is not None and name not in include:
                continue
            out[info.alias if by_alias and info.alias else name] = plain(value, exclude_none)
        return out

    dict = model_dump

    def model_dump_json(self, indent=None, **kw):
        return json.dumps(self.model_dump(**kw), indent=indent, ensure_ascii=False, default=str)

    json = model_dump_json

    def model_copy(self, update=None, deep=False, **_):
        out = copy.deepcopy(self) if deep else copy.copy(self)
        for name, value in (update or {}).items():
            object.__setattr__(out, name, value)
        return out

    @classmethod
    def model_json_schema(cls, **_):
        return schema_of(cls, 0)

    schema = model_json_schema
    model_fields = classproperty(fields_of)
    __fields__ = classproperty(fields_of)

    def __eq__(self, other):
        return type(self) is type(other) and self.model_dump() == other.model_dump()

    __hash__ = object.__hash__

    def __repr__(self):
        return "%s(%s)" % (type(self).__name__, ", ".join("%s=%r" % (n, getattr(self, n, None)) for n in fields_of(type(self))))


def attempt(check, cls, value, name, problems):
    try:
        return check.run(cls, value)
    except (ValueError, AssertionError) as e:
        problems.append((name, str(e)))
        return value


def plain(value, exclude_none=False):
    if isinstance(value, Model):
        return value.model_dump(exclude_none=exclude_none)
    if isinstance(value, (list, tuple, set)):
        return [plain(v, exclude_none) for v in value]
    if isinstance(value, dict):
        return {k: plain(v, exclude_none) for k, v in value.items()}
    return value.value if isinstance(value, enum.Enum) else value


UNIONS = (typing.Union, getattr(types, "UnionType", typing.Union))


def convert(tp, value, at, problems, extra=None):
    """Returns a value converted to a type. It appends the problems to problems."""

    def bad(why):
        problems.append((at, why))
        return value

    origin, args = typing.get_origin(tp), typing.get_args(tp)
    if origin is typing.Annotated:
        return convert(args[0], value, at, problems, extra)
    if origin in UNIONS:
        if value is None and type(None) in args:
            return None
        for exact in (True, False):  # prefer a type that needs no conversion
            for a in args:
                if exact and (not isinstance(a, type) or type(value) is not a):
                    continue
                found = []
                out = convert(a, value, at, found, extra)
                if not found:
                    return out
        return bad(found[0][1] if len(args) == 2 and found else "matches none of the allowed types")
    if origin is typing.Literal:
        return value if value in args else bad("must be one of " + ", ".join(repr(a) for a in args))
    if isinstance(tp, type) and issubclass(tp, enum.Enum):
        try:
            return tp(value)
        except ValueError:
            return bad("must be one of " + ", ".join(repr(m.value) for m in tp))
    if isinstance(tp, type) and issubclass(tp, Model):
        try:
            return tp.model_validate(value)
        except ValidationError as e:
            problems.extend(("%s.%s" % (at, inner) if inner else at, why) for inner, why in e.problems)
            return value
    if tp is type(None):
        return value if value is None else bad("must be null")
    if is_frame(tp) and isinstance(value, (list, dict)):
        try:
            return tp(value)
        except Exception as e:
            return bad("cannot be converted to a data frame: %s" % e)
    if tp is bool:
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        return value if isinstance(value, bool) else bad("is not a boolean")
    if tp is int:
        if isinstance(value, float) and value.is_integer() or isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,30}", value.strip()):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            return bad("is not an integer")
    elif tp is float:
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                return bad("is not a number")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return bad("is not a number")
        value = float(value)
    elif tp is str:
        if not isinstance(value, str):
            return bad("is not a string")
    elif (origin or tp) in (list, set, frozenset, tuple):
        if not isinstance(value, (list, tuple, set, frozenset)):
            return bad("is not a list")
        if (origin or tp) is tuple and args and args[-1] is not ...:
            if len(args) != len(value):
                return bad("has %d elements, want %d" % (len(value), len(args)))
            return tuple(convert(a, v, "%s.%d" % (at, i), problems) for i, (a, v) in enumerate(zip(args, value)))
        value = (origin or tp)(convert(args[0] if args else typing.Any, v, "%s.%d" % (at, i), problems) for i, v in enumerate(value))
    elif (origin or tp) is dict:
        if not isinstance(value, dict):
            return bad("is not an object")
        value = {k: convert(args[1] if len(args) == 2 else typing.Any, v, "%s.%s" % (at, k), problems) for k, v in value.items()}
    return bounded(value, extra or {}, bad)


def is_frame(tp):
    """Reports whether a type is the data frame of pandas or a similar library."""
    return isinstance(tp, type) and tp.__name__ == "DataFrame"


def bounded(value, extra, bad):
    for key, wrong, text in (
        ("ge", lambda v, n: v < n, "is less than"), ("gt", lambda v, n: v <= n, "is not more than"),
        ("le", lambda v, n: v > n, "is more than"), ("lt", lambda v, n: v >= n, "is not less than"),
        ("min_length", lambda v, n: len(v) < n, "is shorter than"), ("max_length", lambda v, n: len(v) > n, "is longer than"),
    ):
        if extra.get(key) is not None:
            try:
                if wrong(value, extra[key]):
                    return bad("%s %s" % (text, extra[key]))
            except TypeError:
                pass
    pattern = extra.get("pattern") or extra.get("regex")
    if isinstance(pattern, str) and isinstance(value, str) and not re.search(pattern, value):
        return bad("does not match " + pattern)
    return value


def schema_of(tp, depth):
    """Returns the JSON Schema of a type."""
    if depth > 16:
        return {}
    origin, args = typing.get_origin(tp), typing.get_args(tp)
    if origin is typing.Annotated:
        return schema_of(args[0], depth)
    if origin in UNIONS:
        return {"anyOf": [schema_of(a, depth + 1) for a in args]}
    if origin is typing.Literal:
        kinds = {str: "string", bool: "boolean", int: "integer"}
        out = {"enum": list(args)}
        if len({type(a) for a in args}) == 1 and type(args[0]) in kinds:
            out["type"] = kinds[type(args[0])]
        return out
    base = origin or tp
    if isinstance(base, type):
        if issubclass(base, enum.Enum):
            return {"enum": [m.value for m in base]}
        if issubclass(base, Model):
            out = {"type": "object", "properties": {}, "title": base.__name__}
            need = []
            for name, info in fields_of(base).items():
                prop = schema_of(info.annotation, depth + 1)
                if info.description:
                    prop["description"] = info.description
                for key, word in (("ge", "minimum"), ("gt", "exclusiveMinimum"), ("le", "maximum"), ("lt", "exclusiveMaximum"), ("pattern", "pattern"),
                                  ("title", "title"), ("examples", "examples")):
                    if info.extra.get(key) is not None:
                        prop[word] = info.extra[key]
                for key in ("min_length", "max_length"):
                    if info.extra.get(key) is not None:
                        prop[key[:3] + ("Items" if prop.get("type") == "array" else "Length")] = info.extra[key]
                if info.is_required():
                    need.append(info.alias or name)
                elif info.default_factory is None:
                    default = plain(info.default)
                    if default is None or isinstance(default, (str, int, float, bool, list, dict)):
                        prop["default"] = default
                out["properties"][info.alias or name] = prop
            if need:
                out["required"] = need
            if base.__doc__ and base.__doc__ != Model.__doc__:
                out["description"] = inspect.cleandoc(base.__doc__)
            return out
        if issubclass(base, bool):
            return {"type": "boolean"}
        if issubclass(base, int):
            return {"type": "integer"}
        if issubclass(base, float):
            return {"type": "number"}
        if issubclass(base, str):
            return {"type": "string"}
        if base is type(None):
            return {"type": "null"}
        if issubclass(base, (list, tuple, set, frozenset)):
            out = {"type": "array"}
            if args and (base is not tuple or args[-1] is ...):
                out["items"] = schema_of(args[0], depth + 1)
            return out
        if is_frame(base):
            return {"type": "array", "items": {"type": "object"}}
        if issubclass(base, dict):
            out = {"type": "object"}
            if len(args) == 2:
                out["additionalProperties"] = schema_of(args[1], depth + 1)
            return out
    return {}


# --- A tool base class, used if langchain_core is not installed ---------------------


class ToolException(Exception):
    pass


class Callbacks(metaclass=OrMeta):
    """A callback manager that ignores all events."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *a, **k: None


PASSED = ("self", "run_manager", "callbacks", "config", "runtime")


def model_of(function, name, skipped=PASSED, texts=None):
    """Returns a model of a function's parameters. texts contains their descriptions by name."""
    hints = hints_of(function)
    space = {"__annotations__": {}}
    for p in inspect.signature(function).parameters.values():
        if p.name in skipped or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        space["__annotations__"][p.name] = hints.get(p.name, typing.Any)
        if p.default is not p.empty:
            space[p.name] = p.default
        if texts and p.name in texts:
            space[p.name] = Field(space.get(p.name, ...), description=texts[p.name])
    return type(Model)(name, (Model,), space)


SECTION = re.compile(r"^(Args|Arguments|Parameters|Params|Returns?|Yields?|Raises|Examples?|Notes?|参数|返回值?|异常|示例)[:：]\s*$")
PARAMETER = re.compile(r"^(?::param\s+(?:[^:]*\s)?)?\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*[:：]\s*(.*)$")


def docstring(function):
    """Returns the description in a function's docstring without the parameters, and the descriptions of the parameters by name.

    The parameters are in a section Args, or in fields such as `:param name: text`."""
    lines, texts, inside, name, deep = [], {}, False, None, None
    for line in (inspect.getdoc(function) or "")[:20000].splitlines():
        head = SECTION.match(line)
        if head:
            inside, name, deep = head.group(1) in ("Args", "Arguments", "Parameters", "Params", "参数"), None, None
            if not inside:
                lines.append(line)
            continue
        depth = len(line) - len(line.lstrip())
        if inside and line.strip() and depth == 0 or line.startswith(":param "):
            inside, name, deep = False, None, None
        found = PARAMETER.match(line.strip())
        if line.startswith(":param ") and found:
            texts[found.group(1)] = found.group(2)
        elif not inside:
            lines.append(line)
        elif line.strip():
            deep = depth if deep is None else deep
            if found and depth <= deep:
                name = found.group(1)
                texts[name] = found.group(2)
            elif name:
                texts[name] = (texts[name] + " " + line.strip()).strip()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip(), {k: v[:2000] for k, v in texts.items()}


class BaseTool(Model):
    _loadout_extra = True
    name: str = ""
    description: str = ""
    args_schema: typing.Any = None
    return_direct: bool = False
    verbose: bool = False
    response_format: str = "content"
    handle_tool_error: typing.Any = False
    metadata: typing.Any = None
    tags: typing.Any = None

    def _run(self, *args, **kwargs):
        raise NotImplementedError("_run is not implemented")

    async def _arun(self, *args, **kwargs):
        return await asyncio.get_running_loop().run_in_executor(None, lambda: self._run(*args, **kwargs))

    def get_input_schema(self, _config=None):
        if self.args_schema is not None:
            return self.args_schema
        models = [model_of(f, type(self).__name__) for f in (self._run, self._arun)]
        return max(models, key=lambda m: len(fields_of(m)))  # a method that only raises has no parameters

    @property
    def args(self):
        s = self.get_input_schema()
        return (s if isinstance(s, dict) else s.model_json_schema()).get("properties", {})

    def invoke(self, given, _config=None, **_):
        return content_of(self, self._run(**accepted(self._run, checked(self, as_arguments(self, given)))))

    async def ainvoke(self, given, _config=None, **_):
        given = checked(self, as_arguments(self, given))
        function = self._run if type(self)._arun is BaseTool._arun else self._arun
        return content_of(self, await self._arun(**accepted(function, given)))

    run = invoke
    arun = ainvoke


def content_of(tool, value):
    """Returns the result of a tool without an artifact, which is not for the model."""
    return value[0] if tool.response_format == "content_and_artifact" and isinstance(value, tuple) and len(value) == 2 else value


def as_arguments(tool, given):
    if isinstance(given, dict):
        return given
    names = list(tool.args)
    return {names[0]: given} if names else {}


def checked(tool, given):
    """Returns the arguments of a call, converted to the types in the tool's schema."""
    s = tool.get_input_schema()
    if isinstance(s, dict) or not isinstance(s, type):
        return given
    if issubclass(s, Model):
        values = s.model_validate(given)
        return {n: getattr(values, n) for n in fields_of(s)}
    if hasattr(s, "model_validate"):
        values = s.model_validate(given)
        return {n: getattr(values, n) for n in s.model_fields}
    return given


def accepted(function, given):
    """Returns the arguments and those that LangChain passes if the function requires them."""
    given = dict(given)
    for p in inspect.signature(function).parameters.values():
        if p.name in ("run_manager", "callbacks") and p.default is p.empty:
            given[p.name] = Callbacks()
        elif p.name == "config" and p.default is p.empty and p.name not in given:
            given[p.name] = {}
    return given


class StructuredTool(BaseTool):
    func: typing.Any = None
    coroutine: typing.Any = None

    @classmethod
    def from_function(cls, func=None, coroutine=None, name=None, description=None, args_schema=None, **kw):
        f = func or coroutine
        kw.pop("infer_schema", None)
        return cls(func=func, coroutine=coroutine, name=name or f.__name__, description=description or inspect.getdoc(f) or "",
                   args_schema=args_schema or model_of(f, f.__name__), **kw)

    def _run(self, **kwargs):
        if self.func is None:
            raise NotImplementedError("the tool is asynchronous")
        return self.func(**accepted(self.func, kwargs))

    async def _arun(self, **kwargs):
        if self.coroutine is not None:
            out = self.coroutine(**accepted(self.coroutine, kwargs))
            return await out if inspect.isawaitable(out) else out
        return await asyncio.get_running_loop().run_in_executor(None, lambda: self._run(**kwargs))


class Tool(StructuredTool):
    def __init__(self, name=None, func=None, description="", **kw):
        super().__init__(name=name, func=func, description=description, args_schema=kw.pop("args_schema", None) or model_of(func, name or "tool"), **kw)


def tool(*args, name=None, description=None, args_schema=None, return_direct=False, response_format="content", **_):
    """LangChain's decorator for functions."""

    def make(f):
        sync = None if inspect.iscoroutinefunction(f) else f
        return StructuredTool.from_function(func=sync, coroutine=None if sync else f, name=name or (args[0] if args and isinstance(args[0], str) else None),
                                            description=description, args_schema=args_schema, return_direct=return_direct, response_format=response_format)

    return make(args[0]) if args and callable(args[0]) else make


# --- Modules of the programs that providers were written for -------------------


class SkillToolContext(metaclass=OrMeta):
    """The user and the conversation of a tool. It never contains a token."""

    def __init__(self, task_id=0, subtask_id=0, user_id=0, db_session=None, ws_emitter=None, skill_config=None, user_name="", auth_token="",
                 skill_identity_token="", load_skill_tool=None, person="", session="", config=None, ask=None):
        self.task_id, self.subtask_id, self.user_id, self.user_name = task_id, subtask_id, user_id, user_name
        self.db_session = self.ws_emitter = self.load_skill_tool = None
        self.auth_token = self.skill_identity_token = ""
        self.skill_config = skill_config or {}
        self.person, self.session, self.config, self.ask = person, session, config or {}, ask

    def get_config(self, key, default=None):
        return self.skill_config.get(key, default)


class SkillToolProvider(metaclass=OrMeta):
    """The base class of providers."""

    provider_name = ""
    supported_tools = ()

    def create_tool(self, tool_name, context, tool_config=None):
        raise NotImplementedError("create_tool is not implemented")

    def validate_config(self, tool_config):
        return True


class Kind(enum.Enum):
    FILE = "file"
    DIR = "dir"


class Here:
    """Replaces the sandbox of a service with the one of this process. /home/user is the work directory."""

    sandbox_id = "loadout"

    def __init__(self):
        self.commands = self.files = self

    @staticmethod
    def local_path(path):
        path = os.path.normpath(os.path.join("/home/user", path or ""))
        work = os.environ.get("LOADOUT_WORK", "/work")
        return work + path[len("/home/user"):] if path == "/home/user" or path.startswith("/home/user/") else path

    @staticmethod
    async def run_in_thread(f):
        return await asyncio.get_running_loop().run_in_executor(None, f)

    async def run(self, cmd, cwd=None, timeout=60, envs=None, **_):
        def go():
            p = subprocess.Popen(["/bin/sh", "-c", cmd], cwd=self.local_path(cwd), env={**os.environ, **(envs or {})}, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
            try:
                out, err = p.communicate(timeout=timeout or None)
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, signal.SIGKILL)
                p.communicate()
                raise TimeoutError("command timed out (limit %s seconds)" % timeout)
            return types.SimpleNamespace(stdout=out.decode("utf-8", "replace"), stderr=err.decode("utf-8", "replace"), exit_code=p.returncode, error=None)

        return await self.run_in_thread(go)

    def info(self, path):
        at = self.local_path(path)
        st = os.lstat(at)
        return types.SimpleNamespace(
            name=os.path.basename(path), path=path, type=Kind.DIR if os.path.isdir(at) else Kind.FILE, size=st.st_size, mode=st.st_mode & 0o777,
            permissions=stat.filemode(st.st_mode)[1:], owner=str(st.st_uid), group=str(st.st_gid), modified_time=datetime.datetime.fromtimestamp(st.st_mtime),
            symlink_target=os.readlink(at) if os.path.islink(at) else None)

    async def get_info(self, path, **_):
        return self.info(path)

    async def exists(self, path, **_):
        return os.path.exists(self.local_path(path))

    async def list(self, path="/home/user", depth=1, **_):
        out = []

        def walk(path, left):
            for name in sorted(os.listdir(self.local_path(path))):
                entry = self.info(os.path.join(path, name))
                out.append(entry)
                if left > 1 and entry.type is Kind.DIR and entry.symlink_target is None and len(out) < 10000:
                    walk(entry.path, left - 1)

        await self.run_in_thread(lambda: walk(path, depth or 1))
        return out

    async def read(self, path, format="text", **_):
        with open(self.local_path(path), "rb") as f:
            data = f.read()
        return bytearray(data) if format == "bytes" else data.decode("utf-8", "replace")

    async def write(self, path, data, **_):
        with open(self.local_path(path), "wb") as f:
            f.write(data.encode() if isinstance(data, str) else bytes(data))
        return self.info(path)

    async def make_dir(self, path, **_):
        os.makedirs(self.local_path(path), exist_ok=True)
        return True

    async def remove(self, path, **_):
        os.remove(self.local_path(path))


class SandboxManager(metaclass=OrMeta):
    """Returns the sandbox of this process."""

    def __init__(self, *args, **kwargs):
        pass

    @classmethod
    def get_instance(cls, *args, **kwargs):
        return cls()

    @classmethod
    def remove_instance(cls, *args, **kwargs):
        pass

    async def get_or_create_sandbox(self, *args, **kwargs):
        return Here(), None

    def kill_sandbox(self):
        pass


class BaseSandboxTool(BaseTool):
    task_id: typing.Any = 0
    subtask_id: typing.Any = 0
    ws_emitter: typing.Any = None
    user_id: typing.Any = 0
    user_name: str = ""
    bot_config: list = []
    auth_token: str = ""
    skill_identity_token: str = ""
    load_skill_tool: typing.Any = None
    default_shell_type: str = "ClaudeCode"
    timeout: int = 7200

    def _get_sandbox_manager(self):
        return SandboxManager()

    def kill_sandbox(self):
        pass

    def _format_error(self, error_message, **kwargs):
        return json.dumps({"success": False, "error": error_message, "suggestion": "The operation could not be completed.", **kwargs}, ensure_ascii=False, indent=2)

    async def _emit_tool_status(self, status, message="", result=None):
        pass


class PendingRequests:
    """The requests to Wegent's page that are not answered yet. Providers written before 2026 use it."""

    def __init__(self):
        self.requests = {}

    async def register(self, request_id, skill_name="", action="", payload=None, timeout_seconds=30.0):
        future = asyncio.get_running_loop().create_future()
        self.requests[request_id] = types.SimpleNamespace(request_id=request_id, skill_name=skill_name, action=action, payload=payload or {},
                                                          future=future, timeout_seconds=timeout_seconds)
        return future

    async def resolve(self, request_id, result, error=None):
        request = self.requests.pop(request_id, None)
        if request is None or request.future.done():
            return False
        request.future.set_result(result if isinstance(result, dict) and "success" in result else {"success": error is None, "result": result, "error": error})
        return True

    async def get(self, request_id):
        return self.requests.get(request_id)

    async def cleanup_expired(self):
        return 0

    async def start_pubsub_listener(self):
        pass

    stop_pubsub_listener = start_pubsub_listener


PENDING = PendingRequests()


async def pending_requests():
    return PENDING


async def no_pending_requests():
    PENDING.requests.clear()


class Emitter:
    """Replaces the connection to Wegent's page. It sends requests with context.ask, and ignores other events."""

    def __init__(self, ask):
        self._ask, self._asking = ask, set()

    async def emit_skill_request(self, task_id=0, request_id="", skill_name="", action="", data=None, **_):
        task = asyncio.ensure_future(self._answer(request_id, skill_name, action, data))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _answer(self, request_id, skill_name, action, data):
        request = await PENDING.get(request_id)
        try:
            got = await self._ask("%s of %s" % (action, skill_name), None, {"skill_name": skill_name, "action": action, "data": data,
                                                                        "timeout": getattr(request, "timeout_seconds", 30.0)})
            result = got.get("content") or {}
            if not isinstance(result.get("success"), bool):
                result = {"success": False, "error": "the page did not perform %s: %s" % (action, got.get("reason") or "no answer from the user, or the client has no page")}
        except Exception as e:
            result = {"success": False, "error": "couldn't send %s to the page: %s" % (action, e)}
        await PENDING.resolve(request_id, result)

    def __getattr__(self, name):
        if not name.startswith("emit_"):
            raise AttributeError("ws_emitter.%s is not supported: to ask the user, use await context.ask(message, schema)" % name)

        async def emit(*args, **kwargs):
            pass

        return emit


PYDANTIC = {"BaseModel": Model, "Field": Field, "PrivateAttr": PrivateAttr, "ValidationError": ValidationError, "ConfigDict": dict, "FieldInfo": FieldInfo,
            "field_validator": field_validator, "validator": field_validator, "model_validator": model_validator, "root_validator": model_validator}
TOOLS = {"BaseTool": BaseTool, "StructuredTool": StructuredTool, "Tool": Tool, "tool": tool, "ToolException": ToolException}
CALLBACKS = {"CallbackManagerForToolRun": Callbacks, "AsyncCallbackManagerForToolRun": Callbacks, "Callbacks": Callbacks}
CONTEXT = {"SkillToolContext": SkillToolContext, "SkillToolProvider": SkillToolProvider}
REQUESTS = {"PendingRequestRegistry": PendingRequests, "get_pending_request_registry": pending_requests,
            "get_pending_request_registry_sync": lambda: PENDING, "shutdown_pending_request_registry": no_pending_requests}

STAND_INS = {
    "pydantic": PYDANTIC, "pydantic.fields": PYDANTIC, "pydantic.v1": PYDANTIC, "langchain_core.pydantic_v1": PYDANTIC,
    "langchain_core": {}, "langchain_core.tools": TOOLS, "langchain_core.tools.base": TOOLS, "langchain_core.callbacks": CALLBACKS,
    "langchain_core.callbacks.manager": CALLBACKS, "langchain_core.runnables": {"RunnableConfig": dict},
    "langchain": {}, "langchain.tools": TOOLS,
    "httpx": {},  # Wegent's tools import it, but use it only with a token, which they never get
    "chat_shell": {}, "chat_shell.skills": CONTEXT, "chat_shell.skills.context": CONTEXT, "chat_shell.skills.provider": CONTEXT, "chat_shell.tools": {},
    "chat_shell.tools.sandbox": {"BaseSandboxTool": BaseSandboxTool, "SandboxManager": SandboxManager, "DEFAULT_EXECUTOR_MANAGER_URL": "", "DEFAULT_SANDBOX_TIMEOUT": 1800},
}
for package in ("chat_shell", "chat_shell.chat_shell", "app.chat_shell", "app.services.chat_v2"):  # the names in versions of Wegent, newest first
    for module in ("skills", "skills.base", "skills.context", "skills.provider"):
        STAND_INS.setdefault(package + "." + module, CONTEXT)
    STAND_INS[package + ".tools.pending_requests"] = REQUESTS

# A provider may also import names of these programs that have no stand-in. It
# loads, and raises an error when it uses them.
PROGRAMS = ("chat_shell", "shared", "app")


ABSENT = ("%s is not available: it belongs to the program that the provider was written for. Remove it. To ask the user, use "
          "await context.ask(message, schema); to ask a page, await context.ask(message, action={...}); settings are in context.config")


class AbsentMeta(OrMeta):
    def __getattr__(cls, name):
        raise AttributeError(ABSENT % (cls.__name__ + "." + name))


class Absent(metaclass=AbsentMeta):
    """A name of a program that is not available."""

    def __init__(self, *args, **kwargs):
        raise RuntimeError(ABSENT % type(self).__name__)


class Finder:
    """Finds stand-ins. It is the last finder, so installed packages take precedence."""

    @staticmethod
    def find_spec(name, _path=None, _target=None):
        if name in STAND_INS or name.split(".")[0] in PROGRAMS:
            return importlib.util.spec_from_loader(name, Finder, is_package=True)
        return None

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        name = module.__name__
        vars(module).update(STAND_INS.get(name, {}))
        program = name.split(".")[0]

        def missing(attribute):
            if attribute.startswith("__"):
                raise AttributeError(attribute)
            if program in PROGRAMS:
                return type(Absent)("%s.%s" % (name, attribute), (Absent,), {})
            raise AttributeError("the stand-in for %s has no %s: add the package %s to the skill's requirements.txt" % (name, attribute, program.replace("_", "-")))

        module.__getattr__ = missing


# --- The provider ----------------------------------------------------------------


def number(text):
    """Returns a positive number derived from a text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") % (1 << 31) + 1 if text else 0


def own_frames(error):
    """Returns file, line and function of each frame of a traceback that is in the skill."""
    return [(f.filename, f.lineno, f.name) for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(SKILL + "/")]


def defined(function):
    """Returns a list with file, line and name of a function, or an empty list if it is not in the skill."""
    code = getattr(inspect.unwrap(function) if callable(function) else None, "__code__", None)
    return [(code.co_filename, code.co_firstlineno, code.co_name)] if code and code.co_filename.startswith(SKILL + "/") else []


def describe_error(error, skill, called=()):
    """Returns a description of an error and its location in the skill. The default location is that of the first function in called."""
    frames = own_frames(error) or next(filter(None, map(defined, called)), [])
    lines = ["  skill %s, %s, line %d, in %s" % (skill, os.path.relpath(file, SKILL), line, name) for file, line, name in frames]
    if isinstance(error, SyntaxError) and error.filename:
        lines.append("  skill %s, %s, line %s" % (skill, os.path.relpath(error.filename, SKILL), error.lineno))
    text = "%s: %s" % (type(error).__name__, error)
    if isinstance(error, ModuleNotFoundError) and str(error.name).split(".")[0] not in PROGRAMS:
        text += "; if a package provides it, add the package to the skill's requirements.txt"
    if isinstance(error, SyntaxError):
        text += "; this is Python %d.%d: code for a newer version needs a newer python3 that comes first in PATH" % sys.version_info[:2]
    return text + ("\n" + "\n".join(lines[-8:]) if lines else "")


class Provider:
    """The tools of one skill."""

    def __init__(self, spec, ask):
        self.spec, self.skill, self.tools, self.skipped = spec, spec["skill"], {}, []
        self.error = ""
        try:
            if self.spec.get("function"):
                self.create_function(self.load(), self.spec["function"])
            else:
                self.create(self.provider_of(self.load()), ask)
        except BaseException as e:  # also one that exits
            traceback.print_exc()
            self.error = "the provider of skill %s cannot be loaded: %s" % (self.skill, describe_error(e, self.skill))
            warn(self.error)

    def load(self):
        """Imports the skill's module in a package of its own."""
        module = self.spec.get("module") or "provider"
        package = "skill_pkg_" + re.sub(r"\W", "_", self.skill)
        init = os.path.join(SKILL, "__init__.py")
        if os.path.exists(init):
            spec = importlib.util.spec_from_file_location(package, init, submodule_search_locations=[SKILL])
            home = importlib.util.module_from_spec(spec)
            sys.modules[package] = home
            try:
                spec.loader.exec_module(home)
            except Exception as e:
                warn("skill %s: __init__.py ignored: %s" % (self.skill, describe_error(e, self.skill)))
        else:
            home = types.ModuleType(package)
            home.__path__, home.__package__ = [SKILL], package
            sys.modules[package] = home
        return importlib.import_module(package + "." + module)

    def provider_of(self, loaded):
        cls = self.spec["class"]
        found = getattr(loaded, cls, None)
        if not isinstance(found, type):
            raise LookupError("%s.py has no class %s" % ((self.spec.get("module") or "provider").replace(".", "/"), cls))
        if not callable(getattr(found, "create_tool", None)):
            raise TypeError("class %s is not a provider: no create_tool method" % cls)
        return found()

    def create_function(self, loaded, name):
        """Creates a tool from a function. Its schema comes from the signature and the docstring."""
        f = getattr(loaded, name, None)
        if not callable(f) or isinstance(f, type):
            raise LookupError("%s.py has no function %s" % (self.spec["module"].replace(".", "/"), name))
        text, texts = docstring(f)
        later = inspect.iscoroutinefunction(f)
        model = model_of(f, name, (), texts)
        for info in fields_of(model).values():
            if info.default is None:  # optional parameters accept null
                info.annotation = typing.Optional[info.annotation]
        made = StructuredTool(name=name, description=text or str(self.spec.get("description") or ""), args_schema=model, func=None if later else f, coroutine=f if later else None)
        description = self.describe(name, made, {})
        description["inputSchema"].pop("title", None)
        self.tools[name] = (made, description)

    def skip(self, name, provider, reason):
        self.skipped.append("tool %s skipped: %s" % (name, reason))
        warn("skill %s: tool %s skipped: %s" % (self.skill, name, reason))

    def create(self, provider, ask):
        own, supported = str(provider.provider_name or ""), list(provider.supported_tools or ())
        shared = self.spec.get("config") or {}
        declared = self.spec.get("tools") or [{"name": n, "provider": own} for n in supported]
        import_context()
        for d in declared:
            name, by = d.get("name"), d.get("provider") or own
            config = {**shared, **(d.get("config") or {})}
            if not name or not isinstance(name, str):
                self.skip(str(name), by, "missing name")
            elif by != own:
                self.skip(name, by, "provider %s not found: the skill has %s" % (by, own or "a provider without a name"))
            elif supported and name not in supported:
                self.skip(name, by, "not supported by provider %s" % own)
            elif name in self.tools:
                self.skip(name, by, "duplicate name")
            else:
                try:
                    made = tool_of(provider.create_tool(name, self.context(config, ask), dict(config)), d.get("parameters"))
                    self.tools[name] = (made, self.describe(name, made, d))
                except BaseException as e:
                    traceback.print_exc()
                    self.skip(name, by, describe_error(e, self.skill, [provider.create_tool]))

    def context(self, config, ask):
        session, person = self.spec.get("session") or "", self.spec.get("person") or ""
        c = CONTEXT_CLASS(task_id=number(session), subtask_id=1, user_id=number(person), db_session=None, ws_emitter=None, user_name=person,
                          skill_config={"name": self.skill, "config": self.spec.get("config") or {}, "tools": self.spec.get("tools") or []})
        c.person, c.session, c.config, c.ask, c.ws_emitter = person, session, config, ask, Emitter(ask)
        return c

    @staticmethod
    def describe(name, made, declared):
        schema = getattr(made, "args_schema", None)
        if schema is None and hasattr(made, "get_input_schema"):
            schema = made.get_input_schema()
        if isinstance(schema, type) and hasattr(schema, "model_json_schema"):
            schema = schema.model_json_schema()
        elif isinstance(schema, type) and hasattr(schema, "schema"):
            schema = schema.schema()
        if not isinstance(schema, dict):
            schema = declared.get("parameters") or {"type": "object"}
        schema = json.loads(json.dumps(schema, default=str))
        schema.setdefault("type", "object")
        out = {"name": name, "description": str(getattr(made, "description", "") or declared.get("description") or ""), "inputSchema": schema}
        title = getattr(made, "display_name", None)
        if isinstance(title, str) and title:
            out["title"] = title
        if declared.get("readOnly"):
            out["annotations"] = {"readOnlyHint": True}
        return out

    async def call(self, name, given):
        made = self.tools[name][0]
        return await (call_own(made, given) if isinstance(made, BaseTool) else made.ainvoke(given))

    def code(self, name):
        """Returns the functions that a tool may have called, the most likely first."""
        made = self.tools[name][0]
        return [getattr(made, n, None) for n in ("coroutine", "func", "_arun", "_run")]


CONTEXT_CLASS = SkillToolContext


def import_context():
    """Uses the program's own context class if it is installed."""
    global CONTEXT_CLASS
    try:
        CONTEXT_CLASS = importlib.import_module("chat_shell.skills").SkillToolContext
    except Exception:
        CONTEXT_CLASS = SkillToolContext


def tool_of(made, parameters=None):
    """Returns the tool for a result of create_tool: the result if it has a base class, otherwise a tool that calls its methods or a function."""
    if isinstance(made, type):
        raise TypeError("create_tool returned the class %s: return an instance, %s()" % (made.__name__, made.__name__))
    if isinstance(made, BaseTool):
        if type(made)._run is BaseTool._run and type(made)._arun is BaseTool._arun:
            raise TypeError("%s is not a tool: no _run or _arun method" % type(made).__name__)
        return made
    if callable(getattr(made, "ainvoke", None)):
        return made
    run, arun = (f if callable(f) else None for f in (getattr(made, "_run", None), getattr(made, "_arun", None)))
    if not run and not arun and callable(made):
        later = inspect.iscoroutinefunction(made) or inspect.iscoroutinefunction(made.__call__)
        run, arun = (None, made) if later else (made, None)
    if not run and not arun:
        raise TypeError("create_tool returned %s, not a tool: no _run or _arun method" % (made if made is None else "a " + type(made).__name__))
    schema = getattr(made, "args_schema", None)
    if schema is None:
        schema = parameters or schema_of_any(made, [f for f in (run, arun) if f])
    return StructuredTool(name=str(getattr(made, "name", "") or ""), description=str(getattr(made, "description", "") or ""), args_schema=schema,
                          func=run, coroutine=arun, display_name=getattr(made, "display_name", None), response_format=str(getattr(made, "response_format", "content")))


def schema_of_any(made, functions):
    """Returns the schema of the function with the most parameters. If a function accepts any name, the schema accepts any object."""
    try:
        if any(p.kind is p.VAR_KEYWORD for f in functions for p in inspect.signature(f).parameters.values()):
            return {"type": "object"}
        return max((model_of(f, type(made).__name__) for f in functions), key=lambda m: len(fields_of(m)))
    except (TypeError, ValueError):  # functions of C have no signature
        return {"type": "object"}


async def call_own(made, given):
    """Calls a tool with the base class of this file."""
    if type(made)._arun is not BaseTool._arun:
        try:
            return await made.ainvoke(given)
        except NotImplementedError:
            if type(made)._run is BaseTool._run:
                raise
    return await asyncio.get_running_loop().run_in_executor(None, lambda: made.invoke(given))


def result_of(value):
    """Returns the result of a tool in the format of MCP."""
    value = getattr(value, "content", value) if type(value).__name__ == "ToolMessage" else value
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    if isinstance(value, str):
        return {"content": [{"type": "text", "text": value}]}
    if isinstance(value, list) and value and all(isinstance(v, dict) and v.get("type") == "text" and isinstance(v.get("text"), str) for v in value):
        return {"content": [{"type": "text", "text": v["text"]} for v in value]}
    if value is None:
        return {"content": []}
    text = json.dumps(simple(value), ensure_ascii=False)
    out = {"content": [{"type": "text", "text": text}]}
    if isinstance(value, dict):
        out["structuredContent"] = json.loads(text)
    return out


def simple(value, depth=0):
    """Converts a value for JSON. A data frame becomes a list of rows, an array a list, and NaN null."""
    if isinstance(value, enum.Enum):
        value = value.value
    if value is None or isinstance(value, (str, int)) or depth > 50:
        return value if value is None or isinstance(value, (str, int)) else str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Model):
        value = value.model_dump()
    if isinstance(value, dict):
        return {k if isinstance(k, (str, int, float, type(None))) else str(k): simple(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [simple(v, depth + 1) for v in value]
    try:
        if is_frame(type(value)):
            return simple(value.to_dict(orient="records"), depth + 1)
        for name in ("tolist", "isoformat"):  # of arrays and their numbers; of dates
            if callable(getattr(value, name, None)):
                return simple(getattr(value, name)(), depth + 1)
    except Exception:
        pass
    return str(value)


# --- The protocol ----------------------------------------------------------------


class Server:
    def __init__(self, spec, source, sink):
        self.source, self.sink, self.lock = source, sink, threading.Lock()
        self.skill = spec["skill"]
        self.loop = asyncio.new_event_loop()
        self.running, self.waiting, self.asked, self.can_ask = {}, {}, 0, False
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.provider = Provider(spec, self.ask)

    def send(self, message):
        data = json.dumps(dict(jsonrpc="2.0", **message), ensure_ascii=False, default=str).encode("utf-8", "replace")
        with self.lock:
            self.sink.write(data + b"\n")
            self.sink.flush()

    def ask(self, message, schema=None, action=None):
        """Asks the user. The answer is {"action": "accept", "decline" or "cancel", "content": {...}}; await it in a coroutine.

        With action, {"skill_name", "action", "data", "timeout" in seconds}, a client of the conversation performs the action instead
        of asking, for example draws something in its window. The content is {"success", and "result" or "error"}."""
        answer = concurrent.futures.Future()
        if not self.can_ask:
            answer.set_result({"action": "decline", "content": {}, "reason": "the client cannot ask the user"})
        else:
            with self.lock:
                self.asked += 1
                id = "ask-%d" % self.asked
                self.waiting[id] = answer
            params = {"message": str(message), "requestedSchema": schema or {"type": "object", "properties": {}}}
            if action:
                params["_meta"] = {"loadout/action": dict({"skill_name": self.skill}, **action)}
            self.send({"id": id, "method": "elicitation/create", "params": params})
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return answer.result(ASK_SECONDS)
        return asyncio.wrap_future(answer)

    def serve(self):
        while True:
            line = self.source.readline(MAX_LINE)
            if not line:
                return
            if len(line) == MAX_LINE and not line.endswith(b"\n"):
                warn("message too large (limit %d bytes): connection closed" % MAX_LINE)
                return
            if not line.strip():
                continue
            try:
                message = json.loads(line)
            except (ValueError, RecursionError) as e:
                self.send({"id": None, "error": {"code": -32700, "message": "invalid JSON: %s" % e}})
                continue
            for m in message if isinstance(message, list) else [message]:
                try:
                    self.handle(m)
                except Exception:  # an unexpected message does not end the server
                    traceback.print_exc()

    def handle(self, m):
        if not isinstance(m, dict) or m.get("jsonrpc") != "2.0":
            self.send({"id": None, "error": {"code": -32600, "message": "not a JSON-RPC 2.0 message"}})
            return
        method, id, params = m.get("method"), m.get("id"), m.get("params") or {}
        if method is None:
            answer = self.waiting.pop(id, None) if isinstance(id, str) else None
            if answer and not answer.done():
                answer.set_result(m.get("result") or {"action": "cancel", "content": {}, "reason": str((m.get("error") or {}).get("message", ""))})
            return
        if id is None:
            if method == "notifications/cancelled":
                call = self.running.pop(key(params.get("requestId")), None)
                if call:
                    call.cancel()
            return
        try:
            self.request(method, id, params if isinstance(params, dict) else {})
        except Exception as e:
            traceback.print_exc()
            self.send({"id": id, "error": {"code": -32603, "message": describe_error(e, self.skill)}})

    def request(self, method, id, params):
        if method == "initialize":
            self.can_ask = "elicitation" in (params.get("capabilities") or {})
            asked = params.get("protocolVersion")
            self.send({"id": id, "result": {"protocolVersion": asked if asked in LEGACY else LEGACY[0], "capabilities": {"tools": {}},
                                            "serverInfo": {"name": "provider of skill " + self.skill, "version": "1"}}})
        elif method == "ping":
            self.send({"id": id, "result": {}})
        elif method == "tools/list":
            if self.provider.error:
                self.send({"id": id, "error": {"code": -32603, "message": self.provider.error}})
                return
            result = {"tools": [description for _, description in self.provider.tools.values()]}
            if self.provider.skipped:
                result["_meta"] = {"loadout/problems": self.provider.skipped}
            self.send({"id": id, "result": result})
        elif method == "tools/call":
            name, given = params.get("name"), params.get("arguments")
            if name not in self.provider.tools:
                why = self.provider.error or "tool %s not found in the provider of skill %s" % (name, self.skill)
                self.send({"id": id, "error": {"code": -32602, "message": why}})
            elif given is not None and not isinstance(given, dict):
                self.send({"id": id, "error": {"code": -32602, "message": "arguments must be an object"}})
            elif len(self.running) >= MAX_CALLS:
                self.send({"id": id, "result": failed("too many calls in progress (limit %d): try again when one has finished" % MAX_CALLS)})
            else:
                call = asyncio.run_coroutine_threadsafe(self.call(name, given or {}), self.loop)
                self.running[key(id)] = call
                call.add_done_callback(lambda done: self.answer(id, done))
        else:
            self.send({"id": id, "error": {"code": -32601, "message": "unknown method %s" % method}})

    async def call(self, name, given):
        try:
            return result_of(await self.provider.call(name, given))
        except asyncio.CancelledError:
            raise
        except ToolException as e:
            return failed(str(e))
        except BaseException as e:
            if type(e).__name__ == "ValidationError" and not own_frames(e):
                return failed("invalid arguments for %s: %s" % (name, e))
            print("skill %s, tool %s:" % (self.skill, name), file=sys.stderr)
            traceback.print_exc()
            return failed("%s of skill %s failed: %s" % (name, self.skill, describe_error(e, self.skill, self.provider.code(name))))

    def answer(self, id, done):
        self.running.pop(key(id), None)
        if done.cancelled():
            return  # a cancelled request gets no response
        try:
            self.send({"id": id, "result": done.result()})
        except (BrokenPipeError, ValueError):
            pass  # the client has closed the connection


def key(id):
    return "%s %s" % (type(id).__name__, id)


def failed(text):
    return {"isError": True, "content": [{"type": "text", "text": text}]}


# --- Calling the function of a skill as a script ----------------------------------


def call_function(spec, path, args):
    """Calls the function with the JSON object in args and prints the result. Without one, it runs a script that has a main program."""
    given, read = None, b""
    try:
        if args == ["-"]:
            read = sys.stdin.buffer.read(MAX_LINE)
        if len(args) == 1:
            given = json.loads(read if args[0] == "-" else args[0])
    except (ValueError, RecursionError) as e:
        why = "the arguments are not JSON: %s" % e
    else:
        why = "no arguments" if not args else "the arguments are not a single JSON object"
    if not isinstance(given, dict):
        with open(path, "rb") as f:
            if b"__main__" in f.read(MAX_LINE):
                restore_stdin(read)
                os.execv(sys.executable, [sys.executable, path] + args)
    out, sys.stdout = sys.stdout, sys.stderr  # printed text is not part of the result
    provider = Provider(spec, None)
    if provider.error:
        return 1
    name = spec["function"]
    tool, description = provider.tools[name]
    if not isinstance(given, dict):
        schema = description["inputSchema"]
        example = {n: p.get("default", "…") for n, p in schema.get("properties", {}).items() if n in schema.get("required", ())}
        print("%s has no main program, only the function %s: %s.\nPass the arguments as a JSON object, or pass - and write the object to standard input:\n"
              "  loadout run %s %s -- '%s'\nSchema of the arguments:\n%s"
              % (os.path.relpath(path, SKILL), name, why, spec["skill"], os.path.relpath(path, SKILL), json.dumps(example, ensure_ascii=False), json.dumps(schema, ensure_ascii=False, indent=2)), file=sys.stderr)
        return 2
    try:
        value = asyncio.run(provider.call(name, given))
    except BaseException as e:
        if type(e).__name__ == "ValidationError" and not own_frames(e):
            print("invalid arguments for %s: %s" % (name, e), file=sys.stderr)
            return 2
        traceback.print_exc()
        print("%s of skill %s failed: %s" % (name, spec["skill"], describe_error(e, spec["skill"], provider.code(name))), file=sys.stderr)
        return 1
    print(value if isinstance(value, str) else json.dumps(simple(value), ensure_ascii=False, indent=2), file=out, flush=True)
    return 0


def restore_stdin(read):
    """Replaces standard input with a file of what was read and the rest."""
    if read:
        with tempfile.TemporaryFile() as f:
            f.write(read)
            shutil.copyfileobj(sys.stdin.buffer, f)
            f.seek(0)
            os.dup2(f.fileno(), 0)


def main():
    if sys.argv[2:3] == ["call"]:
        prepare()
        sys.exit(call_function(read_spec(), sys.argv[1], sys.argv[3:]))
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)  # also for programs that a tool starts
    os.close(null)
    sys.stdout = sys.stderr
    prepare()
    Server(read_spec(), source, sink).serve()
    sys.stderr.flush()
    os._exit(0)  # does not wait for running tools


def read_spec():
    with open(os.path.join(HERE, "provider.json"), encoding="utf-8") as f:
        return json.load(f)


def prepare():
    """Makes the modules of the skill and the stand-ins importable."""
    sys.path.append(SKILL)
    sys.meta_path.append(Finder)
    sys.dont_write_bytecode = True


if __name__ == "__main__":
    main()
