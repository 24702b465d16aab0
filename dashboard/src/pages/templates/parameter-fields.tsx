import { Checkbox, JsonInput, NumberInput, Stack, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { momentText } from "../../parts/index.ts";

export type Parameters = Readonly<Record<string, unknown>>;

interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly maxLength?: number;
}

const LONG_TEXT = 300;

interface ParameterFieldsProps {
  /** The JSON Schema of all of them. */
  readonly schema: Parameters;
  readonly secret: readonly string[];
  readonly values: Parameters;
  /** What is wrong with each, by its name. */
  readonly faults: ReadonlyMap<string, string>;
  readonly onChange: (values: Parameters) => void;
}

/** A field for each parameter of a template, as its schema says. */
export function ParameterFields({ schema, secret, values, faults, onChange }: ParameterFieldsProps) {
  const properties = Object.entries((schema.properties ?? {}) as Readonly<Record<string, Schema>>);
  const required = (schema.required ?? []) as readonly string[];
  return (
    <Stack gap="sm">
      {properties.map(([name, field]) => (
        <Field
          key={name}
          name={name}
          field={field}
          isRequired={required.includes(name)}
          description={secret.includes(name) ? "secret: never shown in logs and lists" : undefined}
          value={values[name]}
          fault={faults.get(name)}
          onChange={(value) => {
            const { [name]: _, ...rest } = values;
            onChange(value === undefined ? rest : { ...values, [name]: value });
          }}
        />
      ))}
    </Stack>
  );
}

interface FieldProps {
  readonly name: string;
  readonly field: Schema;
  readonly isRequired: boolean;
  readonly description: string | undefined;
  readonly value: unknown;
  readonly fault: string | undefined;
  readonly onChange: (value: unknown) => void;
}

function Field({ name, field, isRequired, description, value, fault, onChange }: FieldProps) {
  const shared = { label: name, description, error: fault, withAsterisk: isRequired };
  if (field.type === "boolean")
    return (
      <Checkbox
        label={name}
        checked={value === true}
        error={fault}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    );
  if (field.type === "number" || field.type === "integer")
    return (
      <NumberInput
        {...shared}
        description={name.endsWith("_at") && typeof value === "number" ? momentText(value) : description}
        value={typeof value === "number" ? value : ""}
        onChange={(number) => onChange(number === "" ? undefined : Number(number))}
      />
    );
  if (field.type !== "string") return <JsonField {...shared} value={value} onChange={onChange} />;
  const text = typeof value === "string" ? value : "";
  const change = (next: string) => onChange(next === "" && !isRequired ? undefined : next);
  return (field.maxLength ?? 0) >= LONG_TEXT && field.format !== "uri" ? (
    <Textarea
      {...shared}
      autosize
      minRows={2}
      maxRows={8}
      value={text}
      onChange={(event) => change(event.currentTarget.value)}
    />
  ) : (
    <TextInput {...shared} value={text} onChange={(event) => change(event.currentTarget.value)} />
  );
}

interface JsonFieldProps extends Pick<FieldProps, "value" | "onChange" | "description"> {
  readonly label: string;
  readonly error: string | undefined;
}

/** Lists and objects as JSON; while it is none, what it was before holds. */
function JsonField({ value, onChange, label, description, error }: JsonFieldProps) {
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value, undefined, 2));
  return (
    <JsonInput
      label={label}
      description={description}
      error={error ?? (isJson(text) ? undefined : "This is not JSON")}
      autosize
      minRows={2}
      maxRows={12}
      value={text}
      onChange={(next) => {
        setText(next);
        if (next.trim() === "") onChange(undefined);
        else if (isJson(next)) onChange(JSON.parse(next));
      }}
    />
  );
}

function isJson(text: string): boolean {
  if (text.trim() === "") return true;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
