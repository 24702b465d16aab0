import { Button, FileButton, List, Modal, Stack, Text } from "@mantine/core";
import { IconUpload } from "@tabler/icons-react";
import { useState } from "react";
import { useChange } from "../../api/index.ts";
import { LoadingState, numberText } from "../../parts/index.ts";

const PATH = "/api/1/admin/email/suppressions/import";
const SHOWN_FAULTS = 20;

/** Suppresses the addresses of a file: first what would happen, then, if somebody agrees, it happens. */
export function ImportButton() {
  const [file, setFile] = useState<File | null>(null);
  const trial = useChange("post", PATH);
  const close = () => {
    setFile(null);
    trial.reset();
  };
  const really = useChange("post", PATH, {
    done: ({ created, strengthened }) => `${numberText(created + strengthened)} addresses are suppressed now`,
    refreshes: ["/api/1/admin/email/suppressions"],
    onDone: close,
  });
  const found = trial.data;
  return (
    <>
      <FileButton
        accept=".csv,text/csv"
        onChange={(chosen) => {
          setFile(chosen);
          if (chosen) trial.mutate({ query: { dry_run: "true" }, body: chosen } as never);
        }}
      >
        {(props) => (
          <Button {...props} size="xs" variant="default" leftSection={<IconUpload size={14} aria-hidden />}>
            Import CSV
          </Button>
        )}
      </FileButton>
      <Modal opened={file !== null} onClose={close} title={`Suppress the addresses of ${file?.name ?? "a file"}`}>
        {found ? (
          <Stack gap="sm">
            <Text size="sm">
              {numberText(found.created)} new ones, {numberText(found.strengthened)} for a stronger reason,{" "}
              {numberText(found.kept)} suppressed already, {numberText(found.refused)} lines left out.
            </Text>
            {found.faults.length > 0 && (
              <List size="sm">
                {found.faults.slice(0, SHOWN_FAULTS).map(({ line, reason }) => (
                  <List.Item key={`${line} ${reason}`}>{`Line ${line}: ${reason}`}</List.Item>
                ))}
              </List>
            )}
            <Button
              loading={really.isPending}
              disabled={found.created + found.strengthened === 0}
              onClick={() => really.mutate({ body: file } as never)}
            >
              Suppress them
            </Button>
          </Stack>
        ) : trial.error ? (
          <Text size="sm">{`${trial.error.message} Choose another file.`}</Text>
        ) : (
          <LoadingState lines={2} />
        )}
      </Modal>
    </>
  );
}
