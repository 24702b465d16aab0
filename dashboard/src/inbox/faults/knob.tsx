import { Button, Group, Input, JsonInput, NumberInput, Select, Stack, Switch, Text } from "@mantine/core";
import { useState } from "react";
import { now } from "../../app/clock.ts";
import { Time } from "../../parts/index.ts";
import styles from "./faults.module.css";
import type { Control, KnobPlan } from "./knob-plans.ts";

interface KnobProps {
  readonly plan: KnobPlan;
  readonly value: unknown;
  readonly onTurn: (value: unknown) => void;
}

/** One knob with the control that fits it. Numbers count when one leaves the field or presses Enter. */
export function Knob({ plan, value, onTurn }: KnobProps) {
  const { label, doc, control } = plan;
  const words = { label, description: doc };
  switch (control.kind) {
    case "share":
      return (
        <Figure {...words} value={percent(value)} unit="%" max={100} onSet={(next) => onTurn((next ?? 0) / 100)} />
      );
    case "number":
      return (
        <Figure
          {...words}
          value={Number(value)}
          unit={control.unit}
          max={control.max}
          onSet={(next) => onTurn(next ?? 0)}
        />
      );
    case "limit":
      return (
        <Figure
          {...words}
          value={value === null ? undefined : Number(value)}
          unit={control.unit}
          max={1_000_000}
          placeholder="none"
          onSet={(next) => onTurn(next === undefined || next < 1 ? null : next)}
        />
      );
    case "flag":
      return (
        <Switch {...words} checked={value === true} onChange={({ currentTarget }) => onTurn(currentTarget.checked)} />
      );
    case "times":
      return <Times {...words} value={value} onTurn={onTurn} />;
    case "choice":
      return (
        <Select
          {...words}
          data={[...(control.none === undefined ? [] : [{ value: "", label: control.none }]), ...control.of]}
          value={value === null ? "" : String(value)}
          allowDeselect={false}
          onChange={(next) => onTurn(next === "" ? null : next)}
        />
      );
    case "failNext":
      return <FailNext {...words} value={value as FailNextValue} onTurn={onTurn} />;
    case "outage":
      return <Outage {...words} value={value as OutageValue} onTurn={onTurn} />;
    case "shares":
      return <Shares {...words} of={control.of} value={value as Readonly<Record<string, number>>} onTurn={onTurn} />;
    case "json":
      return <Anything {...words} control={control} value={value} onTurn={onTurn} />;
  }
}

interface Words {
  readonly label: string;
  readonly description: string;
}

const percent = (value: unknown) => Math.round(Number(value) * 10_000) / 100;

interface FigureProps extends Partial<Words> {
  readonly value: number | undefined;
  readonly unit: string;
  readonly max: number;
  readonly placeholder?: string;
  readonly onSet: (value: number | undefined) => void;
}

function Figure({ value, unit, max, onSet, ...rest }: FigureProps) {
  const [draft, setDraft] = useState<number | string>();
  const commit = () => {
    if (draft === undefined) return;
    setDraft(undefined);
    const next = draft === "" ? undefined : Number(draft);
    if (next !== value) onSet(next);
  };
  return (
    <NumberInput
      {...rest}
      value={draft ?? value ?? ""}
      onChange={setDraft}
      onBlur={commit}
      onKeyDown={({ key }) => key === "Enter" && commit()}
      min={0}
      max={max}
      suffix={` ${unit}`}
      hideControls
    />
  );
}

function Times({ value, onTurn, ...words }: Words & Pick<KnobProps, "value" | "onTurn">) {
  const known = value === true ? "always" : value === false || value === 0 ? "never" : String(value);
  const data = [
    { value: "never", label: "never" },
    ...[...new Set(["1", "3", "10", known])]
      .filter((each) => /^\d+$/.test(each))
      .map((each) => ({ value: each, label: each === "1" ? "once" : `${each} times` })),
    { value: "always", label: "always" },
  ];
  return (
    <Select
      {...words}
      data={data}
      value={known}
      allowDeselect={false}
      onChange={(next) => onTurn(next === "always" ? true : next === "never" ? false : Number(next))}
    />
  );
}

type FailNextValue = { readonly status: number; readonly count: number } | null;

function FailNext({
  label,
  description,
  value,
  onTurn,
}: Words & { value: FailNextValue; onTurn: KnobProps["onTurn"] }) {
  const [status, setStatus] = useState("503");
  const [count, setCount] = useState<number | string>(3);
  const left = value?.count ?? 0;
  return (
    <Input.Wrapper label={label} description={left > 0 ? `${left} more are answered ${value?.status}` : description}>
      <Group gap="xs" mt={5} wrap="nowrap">
        <NumberInput
          aria-label={`${label}: how many`}
          value={count}
          onChange={setCount}
          min={1}
          max={1_000_000}
          w={70}
          hideControls
        />
        <Select
          aria-label={`${label}: status`}
          data={["400", "401", "403", "413", "429", "500", "502", "503"]}
          value={status}
          allowDeselect={false}
          onChange={(next) => setStatus(next ?? "503")}
          w={84}
        />
        {left > 0 ? (
          <Button variant="default" onClick={() => onTurn(null)}>
            Stop
          </Button>
        ) : (
          <Button variant="default" onClick={() => onTurn({ status: Number(status), count: Number(count) || 1 })}>
            Fail
          </Button>
        )}
      </Group>
    </Input.Wrapper>
  );
}

type Window = { readonly from: number; readonly until: number };
type OutageValue = Window | readonly Window[] | null;
const MINUTES = ["1", "5", "15", "60"];

function Outage({ label, description, value, onTurn }: Words & { value: OutageValue; onTurn: KnobProps["onTurn"] }) {
  const [minutes, setMinutes] = useState("5");
  const windows = value === null ? [] : "from" in value ? [value] : value;
  const until = Math.max(...windows.map((each) => each.until));
  return (
    <Input.Wrapper
      label={label}
      description={
        windows.length > 0 ? (
          <>
            Over <Time at={until} />
          </>
        ) : (
          description
        )
      }
    >
      <Group gap="xs" mt={5} wrap="nowrap">
        <Select
          aria-label={`${label}: how long`}
          data={MINUTES.map((each) => ({ value: each, label: `${each} min` }))}
          value={minutes}
          allowDeselect={false}
          onChange={(next) => setMinutes(next ?? "5")}
          w={100}
        />
        {windows.length > 0 ? (
          <Button variant="default" onClick={() => onTurn(null)}>
            End it
          </Button>
        ) : (
          <Button
            variant="default"
            onClick={() => onTurn({ from: Math.floor(now()), until: Math.floor(now()) + 60 * Number(minutes) })}
          >
            Begin
          </Button>
        )}
      </Group>
    </Input.Wrapper>
  );
}

interface SharesProps extends Words {
  readonly of: readonly string[];
  readonly value: Readonly<Record<string, number>>;
  readonly onTurn: KnobProps["onTurn"];
}

function Shares({ label, description, of, value, onTurn }: SharesProps) {
  const names = [...new Set([...of, ...Object.keys(value)])];
  return (
    <fieldset style={{ border: 0, margin: 0, padding: 0 }}>
      <Text component="legend" size="sm" fw={500} p={0}>
        {label}
      </Text>
      <Text size="xs" c="dimmed" mb={6}>
        {description}
      </Text>
      <div className={styles.shares}>
        {names.map((name) => (
          <Figure
            key={name}
            label={name.replaceAll("_", " ")}
            value={percent(value[name] ?? 0)}
            unit="%"
            max={100}
            onSet={(next) => {
              const { [name]: _, ...others } = value;
              onTurn(next ? { ...others, [name]: next / 100 } : others);
            }}
          />
        ))}
      </div>
    </fieldset>
  );
}

interface AnythingProps extends Words {
  readonly control: Extract<Control, { kind: "json" }>;
  readonly value: unknown;
  readonly onTurn: KnobProps["onTurn"];
}

function Anything({ label, description, control, value, onTurn }: AnythingProps) {
  const [draft, setDraft] = useState<string>();
  const text = draft ?? JSON.stringify(value);
  const parsed = parse(text);
  return (
    <Stack gap="xs" align="flex-start">
      <JsonInput
        w="100%"
        label={label}
        description={`${description}. Such as ${control.example}`}
        value={text}
        onChange={setDraft}
        error={parsed === undefined ? "This is not JSON" : undefined}
        autosize
        minRows={1}
      />
      {draft !== undefined && (
        <Group gap="xs">
          <Button
            size="xs"
            disabled={parsed === undefined}
            onClick={() => {
              onTurn(parsed);
              setDraft(undefined);
            }}
          >
            Apply
          </Button>
          <Button size="xs" variant="default" onClick={() => setDraft(undefined)}>
            Leave it
          </Button>
        </Group>
      )}
    </Stack>
  );
}

/** Undefined for what is no JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
