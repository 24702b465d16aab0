import { domains } from "../../domains.ts";
import { jobErrors } from "../../jobs/index.ts";
import { kernelErrors } from "../../kernel/errors.ts";
import { keysReference } from "../../kernel/keyspace/index.ts";
import { apiSpacingErrors } from "../../mechanisms/api-spacing/errors.ts";
import { dataRawErrors } from "../../mechanisms/data-raw/errors.ts";
import { lockErrors } from "../../mechanisms/lock/index.ts";
import { tokenErrors } from "../../mechanisms/one-time-token/errors.ts";
import { quarantineErrors } from "../../mechanisms/quarantine/errors.ts";
import { singleFlightErrors } from "../../mechanisms/single-flight/index.ts";
import { objectStoreErrors } from "../../providers/object-store.ts";
import { errors as demoErrors } from "../demo/errors.ts";
import { foundationErrors } from "../foundation.ts";
import { catalogue, houseErrors } from "../house.ts";
import { httpErrors } from "../http/index.ts";
import { allSettings } from "../settings.ts";
import { configurationReference } from "./reference-configuration.ts";
import { errorsReference } from "./reference-errors.ts";

/** The pages of the handbook that are printed from declarations, for scripts/docs.js. */
export function references(): readonly { readonly path: string; readonly text: string }[] {
  return [
    { path: "docs/keys.md", text: keysReference(catalogue()) },
    { path: "docs/configuration.md", text: configurationReference(allSettings()) },
    { path: "docs/errors.md", text: errorsReference(errorSections()) },
  ];
}

function errorSections() {
  return [
    { title: "The process", errors: { ...foundationErrors, ...houseErrors } },
    { title: "The kernel", errors: kernelErrors },
    {
      title: "Mechanisms",
      errors: {
        ...lockErrors,
        ...apiSpacingErrors,
        ...dataRawErrors,
        ...quarantineErrors,
        ...singleFlightErrors,
        ...tokenErrors,
      },
    },
    { title: "Files", errors: objectStoreErrors },
    { title: "Jobs", errors: jobErrors },
    { title: "HTTP", errors: httpErrors },
    { title: "Demo", errors: demoErrors },
    ...domains.flatMap(({ name, errors }) => (errors ? [{ title: name, errors }] : [])),
  ];
}
