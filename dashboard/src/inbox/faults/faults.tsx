import { Group, Paper, Stack, Tabs, Text } from "@mantine/core";
import { IconCircleCheck, IconFlame, IconRestore } from "@tabler/icons-react";
import { LIVE, useChange, useRead } from "../../api/index.ts";
import { ConfirmButton, ErrorState, LoadingState, Panel } from "../../parts/index.ts";
import styles from "./faults.module.css";
import { Knob } from "./knob.tsx";
import { isTurned, KNOB_PLANS, type KnobPlan, OWNERS, type Owner, turnedOf } from "./knob-plans.ts";

const KNOBS = "/api/1/sandbox/knobs";

/** How the simulated providers misbehave. Everything counts from the next request on. */
export function Faults() {
  const knobs = useRead(KNOBS, undefined, { every: LIVE });
  const change = useChange("patch", KNOBS, { done: "It counts from the next request on", refreshes: [KNOBS] });
  const calm = useChange("delete", KNOBS, { done: "Everything works again", refreshes: [KNOBS] });
  const turned = OWNERS.reduce((sum, { owner }) => sum + turnedOf(knobs.data, owner), 0);
  const set = (owner: Owner, name: string, value: unknown) =>
    change.mutate({ body: { [owner]: { [name]: value } } as never });
  return (
    <Stack gap="md">
      <Paper className={styles.verdict} data-turned={turned > 0} p="md" role="status">
        <Group justify="space-between" gap="sm">
          <Group gap="sm" wrap="nowrap">
            {turned > 0 ? <IconFlame size={22} aria-hidden /> : <IconCircleCheck size={22} aria-hidden />}
            <div>
              <Text fw={600}>
                {turned === 0 ? "Everything works" : turned === 1 ? "1 knob is turned" : `${turned} knobs are turned`}
              </Text>
              <Text size="sm">
                {turned > 0
                  ? "Watch what Carillon makes of it: retries, alerts, and what it gives up."
                  : "Turn a knob, and the next request meets the fault."}
              </Text>
            </div>
          </Group>
          <ConfirmButton
            question="All knobs go back to where everything works."
            confirm="Reset them"
            disabled={turned === 0}
            loading={calm.isPending}
            leftSection={<IconRestore size={14} aria-hidden />}
            onConfirm={() => calm.mutate({})}
          >
            Reset all
          </ConfirmButton>
        </Group>
      </Paper>
      {knobs.error && !knobs.data && <ErrorState error={knobs.error} retry={() => void knobs.refetch()} />}
      {!knobs.data && !knobs.error && <LoadingState lines={8} />}
      {knobs.data && (
        <Tabs defaultValue="expo" keepMounted={false}>
          <Tabs.List mb="md">
            {OWNERS.map(({ owner, label }) => {
              const count = turnedOf(knobs.data, owner);
              return (
                <Tabs.Tab key={owner} value={owner}>
                  {label}
                  {count > 0 && <span className={styles.count}>{count}</span>}
                </Tabs.Tab>
              );
            })}
          </Tabs.List>
          {OWNERS.map(({ owner, label, doc }) => (
            <Tabs.Panel key={owner} value={owner}>
              <Panel title={label} description={doc}>
                <div className={styles.knobs}>
                  {(Object.entries(KNOB_PLANS[owner]) as [string, KnobPlan][]).map(([name, plan]) => {
                    const value = (knobs.data[owner] as Readonly<Record<string, unknown>>)[name];
                    return (
                      <div
                        key={name}
                        className={styles.knob}
                        data-kind={plan.control.kind}
                        data-wide={plan.control.kind === "shares"}
                        data-turned={isTurned(plan, value)}
                      >
                        <Knob plan={plan} value={value} onTurn={(next) => set(owner, name, next)} />
                      </div>
                    );
                  })}
                </div>
              </Panel>
            </Tabs.Panel>
          ))}
        </Tabs>
      )}
    </Stack>
  );
}
