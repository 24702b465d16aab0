import { Grid, NativeSelect } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useRead } from "../../api/index.ts";
import { EmptyState, ErrorState, LoadingState, PageHeader } from "../../parts/index.ts";
import { TemplateList } from "./template-list.tsx";
import { TemplateView } from "./template-view.tsx";

export function Page() {
  const read = useRead("/api/1/admin/email/templates");
  const { template } = useSearch({ strict: false }) as { readonly template?: string };
  const navigate = useNavigate();
  const templates = read.data?.templates;
  const shown = templates?.find(({ slug }) => slug === template) ?? templates?.[0];
  const choose = (slug: string) => void navigate({ to: "/templates", search: { template: slug } as never });
  return (
    <>
      <PageHeader title="Templates">
        Every mail that can be sent, as it will look, with parameters to play with.
      </PageHeader>
      {!templates &&
        (read.error ? (
          <ErrorState error={read.error} retry={() => void read.refetch()} />
        ) : (
          <LoadingState lines={12} />
        ))}
      {templates && !shown && <EmptyState title="There are no templates" />}
      {templates && shown && (
        <Grid gap="md">
          <Grid.Col span={{ base: 12, xl: 3 }}>
            <NativeSelect
              hiddenFrom="xl"
              label="Template"
              value={shown.slug}
              onChange={(event) => choose(event.currentTarget.value)}
              data={templates.map(({ slug, title }) => ({ value: slug, label: title }))}
            />
            <TemplateList templates={templates} shown={shown.slug} />
          </Grid.Col>
          <Grid.Col span={{ base: 12, xl: 9 }}>
            <TemplateView key={shown.slug} template={shown} />
          </Grid.Col>
        </Grid>
      )}
    </>
  );
}
