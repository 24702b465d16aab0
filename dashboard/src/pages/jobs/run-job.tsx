import { Button, JsonInput, Modal, Select, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import { useChange, useRead } from "../../api/index.ts";
import { JobProgress, objectOf } from "../../parts/index.ts";

/** Queues any job by hand and shows what it tells, live. */
export function RunJobButton() {
  const [isOpen, dialog] = useDisclosure(false);
  return (
    <>
      <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={dialog.open}>
        Run a job
      </Button>
      <Modal opened={isOpen} onClose={dialog.close} title="Run a job" size="lg">
        <RunJobForm />
      </Modal>
    </>
  );
}

function RunJobForm() {
  const runners = useRead("/api/1/admin/jobs/runners");
  const [name, setName] = useState<string | null>(null);
  const [kwargs, setKwargs] = useState("{}");
  const run = useChange("post", "/api/1/admin/jobs", { refreshes: ["/api/1/admin/jobs/queues"] });
  const runner = runners.data?.items.find((each) => each.name === name);
  const parsed = objectOf(kwargs);
  return (
    <Stack gap="md">
      <Select
        label="Job"
        placeholder={runners.isPending ? "Loading" : "Choose one"}
        searchable
        data={runners.data?.items.map((each) => each.name) ?? []}
        value={name}
        onChange={setName}
        description={runner?.doc}
        data-autofocus
      />
      <JsonInput
        label="Arguments"
        description={
          runner
            ? `Takes: ${Object.keys((runner.kwargs.properties as object) ?? {}).join(", ") || "nothing"}`
            : "A JSON object"
        }
        value={kwargs}
        onChange={setKwargs}
        error={parsed ? undefined : "This is not a JSON object"}
        autosize
        minRows={3}
        formatOnBlur
      />
      <Button
        disabled={!name || !parsed}
        loading={run.isPending}
        onClick={() => run.mutate({ body: { name: name!, kwargs: parsed!, with_progress: true } })}
      >
        Run it now
      </Button>
      {run.data?.progress && (
        <>
          <Text size="sm" fw={600}>
            What happens
          </Text>
          <JobProgress key={run.data.uid} uid={run.data.progress.uid} />
        </>
      )}
    </Stack>
  );
}
