import {
  DeleteSuppressedDestinationCommand,
  ListSuppressedDestinationsCommand,
  NotFoundException,
  PutSuppressedDestinationCommand,
  type SESv2Client,
} from "@aws-sdk/client-sesv2";
import type { ProviderSuppression, ProviderSuppressions } from "./email.ts";

/** Sends one command through the client of the day, within the time that requests have. */
export type SesCall = <T>(send: (client: SESv2Client, abortSignal: AbortSignal) => Promise<T>) => Promise<T>;

const PAGE = 1_000;

/** The list of addresses that the whole SES account writes to no more. */
export class SesSuppressions implements ProviderSuppressions {
  readonly #call: SesCall;

  constructor(call: SesCall) {
    this.#call = call;
  }

  async *since(time: number): AsyncGenerator<readonly ProviderSuppression[]> {
    let NextToken: string | undefined;
    do {
      const command = new ListSuppressedDestinationsCommand({
        StartDate: new Date(time * 1000),
        PageSize: PAGE,
        NextToken,
      });
      const page = await this.#call((client, abortSignal) => client.send(command, { abortSignal }));
      yield (page.SuppressedDestinationSummaries ?? []).flatMap(({ EmailAddress, Reason }) =>
        EmailAddress === undefined
          ? []
          : [{ email: EmailAddress, reason: Reason === "COMPLAINT" ? ("Complaint" as const) : ("Bounce" as const) }],
      );
      NextToken = page.NextToken;
    } while (NextToken);
  }

  async add({ email, reason }: ProviderSuppression): Promise<void> {
    const command = new PutSuppressedDestinationCommand({
      EmailAddress: email,
      Reason: reason === "Complaint" ? "COMPLAINT" : "BOUNCE",
    });
    await this.#call((client, abortSignal) => client.send(command, { abortSignal }));
  }

  async remove(email: string): Promise<void> {
    const command = new DeleteSuppressedDestinationCommand({ EmailAddress: email });
    try {
      await this.#call((client, abortSignal) => client.send(command, { abortSignal }));
    } catch (error) {
      // It was not there: as wanted.
      if (!(error instanceof NotFoundException)) throw error;
    }
  }
}
