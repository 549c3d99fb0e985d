import { findMsg, msg } from "../i18n/messages";
import { tooShort } from "./phrases";
/**
 * A JSON Schema of an object, as in MCP elicitations: strings, numbers, booleans, enums, lists and
 * objects.
 */
export type FormSchema = Record<string, unknown>;

/** A choice of a list. */
export type Choice = [value: string | number, title: string];

/** The input for a property. Anything else is edited as JSON. */
type Kind = "text" | "number" | "integer" | "boolean" | "choice" | "choices" | "list" | "object" | "json";

export interface Property {
  name: string;
  /** The path, such as "address.city". */
  path: string;
  schema: FormSchema;
  kind: Kind;
  required: boolean;
  title: string;
  description?: string;
  choices: Choice[];
}

/**
 * Invalid JSON of the user. It takes the place of a value until it is fixed, so that it is neither
 * lost nor sent.
 */
export class Unread {
  constructor(
    readonly text: string,
    readonly why: string,
  ) {}
}

export const isObject = (v: unknown): v is Record<string, unknown> =>
  typeof v === "object" && v !== null && !Array.isArray(v);
export const text = (v: unknown): string | undefined => (typeof v === "string" ? v : undefined);
export const number = (v: unknown): number | undefined => (typeof v === "number" ? v : undefined);

/** properties returns the properties of an object in order. */
export function properties(schema: FormSchema, within = "", depth = 0): Property[] {
  const required = Array.isArray(schema.required) ? schema.required : [];
  const known = isObject(schema.properties) ? schema.properties : {};
  return Object.entries(known).map(([name, s]) => {
    const own = isObject(s) ? s : {};
    const choices = choicesOf(own);
    return {
      name,
      path: within ? `${within}.${name}` : name,
      schema: own,
      choices,
      kind: kindOf(own, choices, depth),
      required: required.includes(name),
      title: text(own.title) || name,
      description: text(own.description),
    };
  });
}

/** typeOf returns the type of a schema, without null. */
function typeOf(schema: FormSchema): string | undefined {
  const types = (Array.isArray(schema.type) ? schema.type : [schema.type]).filter((t) => t !== "null");
  return types.length === 1 ? text(types[0]) : undefined;
}

function kindOf(schema: FormSchema, choices: Choice[], depth: number): Kind {
  if (choices.length) return typeOf(schema) === "array" ? "choices" : "choice";
  if (schema.oneOf || schema.anyOf || schema.allOf || schema.$ref) return "json";
  switch (typeOf(schema)) {
    case "string":
      return "text";
    case "number":
      return "number";
    case "integer":
      return "integer";
    case "boolean":
      return "boolean";
    case "array":
      return isObject(schema.items) && typeOf(schema.items) === "string" ? "list" : "json";
    case "object":
      return depth < 3 && isObject(schema.properties) && Object.keys(schema.properties).length ? "object" : "json";
    default:
      return "json";
  }
}

/**
 * choicesOf returns the choices of a schema: enum with enumNames, or oneOf or anyOf with const and
 * title. For a list, those of its items.
 */
function choicesOf(schema: FormSchema): Choice[] {
  const s = typeOf(schema) === "array" && isObject(schema.items) ? schema.items : schema;
  const names = Array.isArray(s.enumNames) ? s.enumNames : [];
  const plain = (v: unknown): v is string | number => typeof v === "string" || typeof v === "number";
  if (Array.isArray(s.enum) && s.enum.every(plain)) return s.enum.map((v, i) => [v, text(names[i]) ?? String(v)]);
  const options = s.oneOf ?? s.anyOf;
  if (!Array.isArray(options) || !options.every((o) => isObject(o) && plain(o.const))) return [];
  return options.map((o: { const: string | number; title?: unknown }) => [o.const, text(o.title) ?? String(o.const)]);
}

/** defaults returns the initial value by the defaults of the schema. */
export function defaults(schema: FormSchema): Record<string, unknown> {
  const value: Record<string, unknown> = {};
  for (const p of properties(schema)) {
    if (p.schema.default !== undefined) value[p.name] = p.schema.default;
    else if (p.kind === "boolean" && p.required) value[p.name] = false;
    else if (p.kind === "object") {
      const inner = defaults(p.schema);
      if (p.required || Object.keys(inner).length) value[p.name] = inner;
    }
  }
  return value;
}

/** problems returns the errors of a value by path, such as "address.city". */
export function problems(schema: FormSchema, value: Record<string, unknown>): Record<string, string> {
  const whole: unknown = value;
  if (whole instanceof Unread) return { "": msg("form.notJson", { why: whole.why }) };
  return within(schema, value, "", 0);
}

function within(schema: FormSchema, value: Record<string, unknown>, at: string, depth: number): Record<string, string> {
  const found: Record<string, string> = {};
  for (const p of properties(schema, at, depth)) {
    const v = value[p.name];
    if (p.kind === "object" && p.required && v === undefined)
      Object.assign(found, within(p.schema, {}, p.path, depth + 1));
    else if (v instanceof Unread) found[p.path] = msg("form.notJson", { why: v.why });
    else if (v === undefined || v === "" || (v === null && !takesNull(p.schema))) {
      if (p.required && !(v === "" && p.kind === "text" && number(p.schema.minLength) === 0))
        found[p.path] = msg("form.required");
    } else if (p.kind === "object" && isObject(v)) Object.assign(found, within(p.schema, v, p.path, depth + 1));
    else {
      const wrong = wrongWith(p, v);
      if (wrong) found[p.path] = wrong;
    }
  }
  return found;
}

const takesNull = (schema: FormSchema) => Array.isArray(schema.type) && schema.type.includes("null");

function wrongWith(p: Property, v: unknown): string | undefined {
  switch (p.kind) {
    case "text":
      return typeof v === "string" ? wrongText(p.schema, v) : msg("form.notText");
    case "number":
    case "integer":
      return wrongNumber(p, v);
    case "boolean":
      return typeof v === "boolean" ? undefined : msg("form.notBoolean");
    case "choice":
      return p.choices.some(([c]) => c === v) ? undefined : msg("form.notChoice");
    case "choices":
      return Array.isArray(v) && v.every((x) => p.choices.some(([c]) => c === x))
        ? wrongCount(p, v)
        : msg("form.notChoice");
    case "list":
      return Array.isArray(v) ? (wrongCount(p, v) ?? wrongItems(p, v)) : msg("form.notList");
    default:
      return wrongType(p.schema, v);
  }
}

const formats: Record<string, (v: string) => boolean> = {
  email: (v) => /^[^\s@]+@[^\s@]+\.[^\s@]+$|^[^\s@]+@localhost$/.test(v),
  uri: (v) => /^[a-z][a-z0-9+.-]*:/i.test(v) && URL.canParse(v),
  date: (v) => /^\d{4}-\d\d-\d\d$/.test(v) && !isNaN(Date.parse(v)) && new Date(v).toISOString().startsWith(v),
  "date-time": (v) => /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/i.test(v) && !isNaN(Date.parse(v)),
  time: (v) => /^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?$/i.test(v),
};

function wrongText(s: FormSchema, v: string): string | undefined {
  const length = [...v].length;
  const least = number(s.minLength);
  const most = number(s.maxLength);
  if (least !== undefined && length < least) return tooShort(least, length);
  if (most !== undefined && length > most) return msg("form.long", { count: most, is: length });
  const format = text(s.format);
  if (format && formats[format] && !formats[format](v)) return findMsg("form.formats", format);
  const pattern = text(s.pattern);
  return pattern && !fits(pattern, v) ? msg("form.pattern", { p: pattern }) : undefined;
}

/**
 * fits reports whether a text matches a pattern. Invalid patterns and long texts are left to the
 * hub, because a hostile pattern may run forever.
 */
function fits(pattern: string, v: string): boolean {
  if (pattern.length > 200 || v.length > 1000 || /[*+}]\)?[*+{]|\([^)]*[*+}][^)]*\)[*+{]/.test(pattern)) return true;
  try {
    return new RegExp(pattern, "u").test(v);
  } catch {
    return true;
  }
}

function wrongNumber(p: Property, v: unknown): string | undefined {
  if (typeof v !== "number" || !Number.isFinite(v)) return msg("form.notNumber");
  if (p.kind === "integer" && !Number.isInteger(v)) return msg("form.notInteger");
  const s = p.schema;
  const least = number(s.minimum);
  const most = number(s.maximum);
  const above = number(s.exclusiveMinimum);
  const below = number(s.exclusiveMaximum);
  if (least !== undefined && v < least) return msg("form.least", { n: least });
  if (most !== undefined && v > most) return msg("form.most", { n: most });
  if (above !== undefined && v <= above) return msg("form.above", { n: above });
  if (below !== undefined && v >= below) return msg("form.below", { n: below });
  const step = number(s.multipleOf);
  if (step && Math.abs(v / step - Math.round(v / step)) > 1e-9) return msg("form.multiple", { n: step });
  return undefined;
}

function wrongCount(p: Property, v: unknown[]): string | undefined {
  const least = number(p.schema.minItems) ?? 0;
  const most = number(p.schema.maxItems);
  if (v.length < least) return msg("form.few", { count: least });
  if (most !== undefined && v.length > most) return msg("form.many", { count: most });
  if (p.schema.uniqueItems && new Set(v.map((x) => JSON.stringify(x))).size < v.length) return msg("form.twice");
  return undefined;
}

function wrongItems(p: Property, v: unknown[]): string | undefined {
  for (const [i, x] of v.entries()) {
    const wrong = typeof x === "string" ? wrongText(p.schema.items as FormSchema, x) : msg("form.notText");
    if (wrong) return msg("form.item", { n: i + 1, why: wrong });
  }
  return undefined;
}

/**
 * wrongType checks only the outer type of a value that is edited as JSON. The hub and the tool
 * check the rest.
 */
function wrongType(s: FormSchema, v: unknown): string | undefined {
  const types = (Array.isArray(s.type) ? s.type : [s.type]).filter((t): t is string => typeof t === "string");
  const is = v === null ? "null" : Array.isArray(v) ? "array" : typeof v;
  const right =
    !types.length || types.includes(is) || (is === "number" && types.includes("integer") && Number.isInteger(v));
  return right ? undefined : msg("form.notType", { types: types.join(", ") });
}
