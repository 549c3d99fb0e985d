import { wf } from "./form-words";

/** A JSON Schema of an object, as questions have: strings, numbers, booleans, enums, lists, objects. */
export type FormSchema = Record<string, unknown>;

/** One thing of a list to choose from. */
export type Choice = [value: string | number, title: string];

/** How a property is asked for. What is none of these is edited as JSON. */
type Kind = "text" | "number" | "integer" | "boolean" | "choice" | "choices" | "list" | "object" | "json";

export interface Property {
  name: string;
  /** Where it is, as "address.city". */
  path: string;
  schema: FormSchema;
  kind: Kind;
  required: boolean;
  title: string;
  description?: string;
  choices: Choice[];
}

/** What was written as JSON and is none: it stands for a value until it is mended, so that it is not lost or sent. */
export class Unread {
  constructor(readonly text: string, readonly why: string) {}
}

export const isObject = (v: unknown): v is Record<string, unknown> => typeof v === "object" && v !== null && !Array.isArray(v);
export const text = (v: unknown): string | undefined => (typeof v === "string" ? v : undefined);
export const number = (v: unknown): number | undefined => (typeof v === "number" ? v : undefined);

/** The properties of an object, in the order in which they are written. */
export function properties(schema: FormSchema, within = "", depth = 0): Property[] {
  const required = Array.isArray(schema.required) ? schema.required : [];
  const known = isObject(schema.properties) ? schema.properties : {};
  return Object.entries(known).map(([name, s]) => {
    const own = isObject(s) ? s : {};
    const choices = choicesOf(own);
    return {
      name, path: within ? `${within}.${name}` : name, schema: own, choices, kind: kindOf(own, choices, depth), required: required.includes(name),
      title: text(own.title) || name, description: text(own.description),
    };
  });
}

/** The type of a schema; of one that also takes null the other. */
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

/** What there is to choose from: enum with enumNames, oneOf or anyOf of const and title; of a list those of its items. */
function choicesOf(schema: FormSchema): Choice[] {
  const s = typeOf(schema) === "array" && isObject(schema.items) ? schema.items : schema;
  const names = Array.isArray(s.enumNames) ? s.enumNames : [];
  const plain = (v: unknown): v is string | number => typeof v === "string" || typeof v === "number";
  if (Array.isArray(s.enum) && s.enum.every(plain)) return s.enum.map((v, i) => [v, text(names[i]) ?? String(v)]);
  const options = s.oneOf ?? s.anyOf;
  if (!Array.isArray(options) || !options.every((o) => isObject(o) && plain(o.const))) return [];
  return options.map((o: { const: string | number; title?: unknown }) => [o.const, text(o.title) ?? String(o.const)]);
}

/** The value to begin with: what the schema says it is when nothing is said. */
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

/** What is wrong with a value, in words, by where it is ("address.city"). Nothing is there if all is right. */
export function problems(schema: FormSchema, value: Record<string, unknown>): Record<string, string> {
  const whole: unknown = value;
  if (whole instanceof Unread) return { "": wf().notJson(whole.why) };
  return within(schema, value, "", 0);
}

function within(schema: FormSchema, value: Record<string, unknown>, at: string, depth: number): Record<string, string> {
  const found: Record<string, string> = {};
  for (const p of properties(schema, at, depth)) {
    const v = value[p.name];
    if (p.kind === "object" && p.required && v === undefined) Object.assign(found, within(p.schema, {}, p.path, depth + 1));
    else if (v instanceof Unread) found[p.path] = wf().notJson(v.why);
    else if (v === undefined || v === "" || (v === null && !takesNull(p.schema))) {
      if (p.required && !(v === "" && p.kind === "text" && number(p.schema.minLength) === 0)) found[p.path] = wf().required;
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
      return typeof v === "string" ? wrongText(p.schema, v) : wf().notText;
    case "number":
    case "integer":
      return wrongNumber(p, v);
    case "boolean":
      return typeof v === "boolean" ? undefined : wf().notBoolean;
    case "choice":
      return p.choices.some(([c]) => c === v) ? undefined : wf().notChoice;
    case "choices":
      return Array.isArray(v) && v.every((x) => p.choices.some(([c]) => c === x)) ? wrongCount(p, v) : wf().notChoice;
    case "list":
      return Array.isArray(v) ? (wrongCount(p, v) ?? wrongItems(p, v)) : wf().notList;
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
  if (least !== undefined && length < least) return wf().short(least, length);
  if (most !== undefined && length > most) return wf().long(most, length);
  const format = text(s.format);
  if (format && formats[format] && !formats[format](v)) return wf().formats[format as keyof ReturnType<typeof wf>["formats"]];
  const pattern = text(s.pattern);
  return pattern && !fits(pattern, v) ? wf().pattern(pattern) : undefined;
}

/** Whether a text fits a pattern. One that the browser cannot read, or a long text, is left to the hub: a hostile pattern may take forever. */
function fits(pattern: string, v: string): boolean {
  if (pattern.length > 200 || v.length > 1000 || /[*+}]\)?[*+{]|\([^)]*[*+}][^)]*\)[*+{]/.test(pattern)) return true;
  try {
    return new RegExp(pattern, "u").test(v);
  } catch {
    return true;
  }
}

function wrongNumber(p: Property, v: unknown): string | undefined {
  if (typeof v !== "number" || !Number.isFinite(v)) return wf().notNumber;
  if (p.kind === "integer" && !Number.isInteger(v)) return wf().notInteger;
  const s = p.schema;
  const least = number(s.minimum);
  const most = number(s.maximum);
  const above = number(s.exclusiveMinimum);
  const below = number(s.exclusiveMaximum);
  if (least !== undefined && v < least) return wf().least(least);
  if (most !== undefined && v > most) return wf().most(most);
  if (above !== undefined && v <= above) return wf().above(above);
  if (below !== undefined && v >= below) return wf().below(below);
  const step = number(s.multipleOf);
  if (step && Math.abs(v / step - Math.round(v / step)) > 1e-9) return wf().multiple(step);
  return undefined;
}

function wrongCount(p: Property, v: unknown[]): string | undefined {
  const least = number(p.schema.minItems) ?? 0;
  const most = number(p.schema.maxItems);
  if (v.length < least) return wf().few(least);
  if (most !== undefined && v.length > most) return wf().many(most);
  if (p.schema.uniqueItems && new Set(v.map((x) => JSON.stringify(x))).size < v.length) return wf().twice;
  return undefined;
}

function wrongItems(p: Property, v: unknown[]): string | undefined {
  for (const [i, x] of v.entries()) {
    const wrong = typeof x === "string" ? wrongText(p.schema.items as FormSchema, x) : wf().notText;
    if (wrong) return wf().item(i + 1, wrong);
  }
  return undefined;
}

/** Of what is edited as JSON the outermost type is looked at; the rest is the hub's and the tool's to judge. */
function wrongType(s: FormSchema, v: unknown): string | undefined {
  const types = (Array.isArray(s.type) ? s.type : [s.type]).filter((t): t is string => typeof t === "string");
  const is = v === null ? "null" : Array.isArray(v) ? "array" : typeof v;
  const right = !types.length || types.includes(is) || (is === "number" && types.includes("integer") && Number.isInteger(v));
  return right ? undefined : wf().notType(types.join(", "));
}
