// Generated from the OpenAPI description by `npm run docs`. Changes here are overwritten.

/** Every route, by method and path: what it takes, and what it answers. */
export interface Routes {
  get: {
    /** List users in order of arrival. */
    "/api/1/admin/users": {
      query?: {
        /** `next` of the page before */
        after?: string | undefined;
        limit?: number | undefined;
        role?: "user" | "organizer" | "admin" | undefined;
      };
      answer: {
        items: {
          sub: string;
          uuid: string;
          role: "user" | "organizer" | "admin";
          timezone: string | null;
          given_name: string | null;
          family_name: string | null;
          /** Unix seconds */
          created_at: number;
        }[];
        next: string | null;
      };
    };
    /** Read a user. */
    "/api/1/admin/users/{sub}": {
      path: {
        /** The user's sub */
        sub: string;
      };
      answer: {
        sub: string;
        uuid: string;
        role: "user" | "organizer" | "admin";
        timezone: string | null;
        given_name: string | null;
        family_name: string | null;
        /** Unix seconds */
        created_at: number;
      };
    };
    /** Read your own profile. */
    "/api/1/users/me": {
      answer: {
        sub: string;
        uuid: string;
        role: "user" | "organizer" | "admin";
        timezone: string | null;
        given_name: string | null;
        family_name: string | null;
        /** Unix seconds */
        created_at: number;
      };
    };
    /** Every change of where a user is, the newest first. */
    "/api/1/admin/users/{sub}/timezone_log": {
      path: {
        /** The user's sub */
        sub: string;
      };
      query?: {
        /** `next` of the page before */
        before?: number | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: {
          uid: string;
          timezone: string | null;
          source: string;
          style: string | null;
          guessed: boolean;
          created_at: number;
        }[];
        next: number | null;
      };
    };
    /** When users want texts, and how they changed their minds. The counts are those of now; the changes are those of finished days, by default the last 30. */
    "/api/1/admin/user_notification_settings": {
      query?: {
        from_date?: string | undefined;
        to_date?: string | undefined;
      };
      answer: {
        counts: Record<"unset" | "text-any" | "text-morning" | "text-afternoon" | "text-evening", number>;
        labels: string[];
        transitions: Record<string, number[]>;
      };
    };
    /** Who is signed in here, and what a page needs to make changes. */
    "/api/1/admin/session": {
      answer: {
        /** null when no browser is signed in by a cookie */
        session: {
          uid: string;
          label: string;
          address: string;
          user_agent: string;
          created_at: number;
          expires_at: number;
          /** Exact to a minute */
          last_used_at: number;
        } | null;
        /** To be sent as `X-CSRF-Token` with every change */
        csrf_token: string | null;
        statistics_timezone: string;
        environment: "development" | "production";
        /** The server's clock, in unix seconds */
        now: number;
      };
    };
    /** Browsers that are signed in to the dashboard, the newest first. */
    "/api/1/admin/sessions": {
      answer: {
        items: {
          uid: string;
          label: string;
          address: string;
          user_agent: string;
          created_at: number;
          expires_at: number;
          /** Exact to a minute */
          last_used_at: number;
        }[];
      };
    };
    /** List admin tokens, the newest first. */
    "/api/1/admin/tokens": {
      query?: {
        before?: string | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: {
          uid: string;
          label: string;
          created_at: number;
          /** Exact to a minute */
          last_used_at: number | null;
          revoked_at: number | null;
        }[];
        next: string | null;
      };
    };
    /** Read what administrators changed, the newest first. */
    "/api/1/admin/audit_log": {
      query?: {
        before?: number | undefined;
        limit?: number | undefined;
        admin?: string | undefined;
        action?: string | undefined;
      };
      answer: {
        items: {
          id: number;
          admin: string;
          action: string;
          target: string;
          detail: Record<string, unknown>;
          created_at: number;
        }[];
        next: number | null;
      };
    };
    /** Queues with their length and age. */
    "/api/1/admin/jobs/queues": {
      answer: {
        queues: {
          key: string;
          length: number;
          oldest_queued_at: number | null;
        }[];
        delayed: number;
        failed: number;
        workers_by_category: Record<string, number>;
      };
    };
    /** Workers, the age of their last heartbeat, and what they run. */
    "/api/1/admin/jobs/workers": {
      answer: {
        items: {
          uid: string;
          host: string;
          pid: number;
          instance: string;
          version: string;
          categories: string;
          concurrency: number;
          started_at: number;
          last_beat_at: number;
          /** Seconds */
          heartbeat_age: number;
          running: {
            name: string;
            since: number;
          }[];
        }[];
      };
    };
    /** The jobs that workers hold right now, the longest-running first. */
    "/api/1/admin/jobs/running": {
      answer: {
        items: {
          name: string;
          /** Without what is named like a secret */
          kwargs: Record<string, unknown>;
          queued_at: number;
          worker_uid: string;
          host: string;
          /** null while it waits for a slot of its worker */
          since: number | null;
          recurring: boolean;
          deliveries: number;
          /** Under this uid it tells of its progress */
          job_uid: string | null;
        }[];
      };
    };
    /** Jobs that wait for their time, those due first first. */
    "/api/1/admin/jobs/delayed": {
      query?: {
        limit?: number | undefined;
        offset?: number | undefined;
      };
      answer: {
        items: {
          name: string;
          /** Without what is named like a secret */
          kwargs: Record<string, unknown>;
          queued_at: number;
          due_at: number;
          attempt: number;
        }[];
      };
    };
    /** What happened to any watched job so far. `since` leaves out events up to that number. */
    "/api/1/admin/jobs/progress/{job_uid}": {
      path: {
        job_uid: string;
      };
      query?: {
        since?: number | undefined;
      };
      answer: {
        events: ({
          seq: number;
          type: "queued" | "started" | "bounce" | "spawned" | "progress" | "failed" | "succeeded";
          message: string;
          indicator: {
            type: "bar";
            at: number;
            of: number;
          } | {
            type: "spinner";
          } | {
            type: "final";
          } | null;
          occurred_at: number;
          spawned?: {
            uid: string;
            name: string;
          };
        })[];
        last_seq: number;
        done: boolean;
      };
    };
    /** Every job that can be run, with the shape of its kwargs. */
    "/api/1/admin/jobs/runners": {
      answer: {
        items: {
          name: string;
          doc: string;
          category: number;
          /** JSON Schema */
          kwargs: Record<string, unknown>;
          timeout: number;
          retry: number[];
          max_deliveries: number;
          ack: "late" | "early";
        }[];
      };
    };
    /** The schedule, with the next time of each recurring job. */
    "/api/1/admin/jobs/recurring": {
      answer: {
        hash: string | null;
        current: boolean;
        items: {
          digest: string;
          name: string;
          doc: string;
          kwargs: Record<string, unknown>;
          schedule: Record<string, unknown>;
          next_run_at: number | null;
          /** The times after that one */
          next_times: number[];
          overdue_by: number;
          in_purgatory: boolean;
        }[];
      };
    };
    /** Jobs that will not run again by themselves, newest first. */
    "/api/1/admin/jobs/failed": {
      query?: {
        limit?: number | undefined;
        offset?: number | undefined;
      };
      answer: {
        items: {
          id: string;
          raw: string;
          reason: "unknown_runner" | "invalid_kwargs" | "error" | "timeout" | "crashed" | "bounce_loop";
          error: string;
          worker: string;
          deliveries: number;
          failed_at: number;
          /** Empty when `raw` is not a job */
          name: string;
          queued_at: number | null;
        }[];
      };
    };
    /** What happened to a watched job so far. Needs the progress token that came with the job. `since` leaves out events up to that number. */
    "/api/1/jobs/{job_uid}/progress": {
      path: {
        job_uid: string;
      };
      query?: {
        since?: number | undefined;
      };
      answer: {
        events: ({
          seq: number;
          type: "queued" | "started" | "bounce" | "spawned" | "progress" | "failed" | "succeeded";
          message: string;
          indicator: {
            type: "bar";
            at: number;
            of: number;
          } | {
            type: "spinner";
          } | {
            type: "final";
          } | null;
          occurred_at: number;
          spawned?: {
            uid: string;
            name: string;
          };
        })[];
        last_seq: number;
        done: boolean;
      };
    };
    /** What the last run of every reporting job did. `state` is `running`, `ok`, `last_failed` (a run began and never ended) or `never`. */
    "/api/1/admin/jobs/reports": {
      answer: {
        items: {
          key: string;
          runner: string;
          state: "never" | "running" | "ok" | "last_failed";
          started_at: number | null;
          finished_at: number | null;
          /** Seconds */
          running_time: number | null;
          stop_reason: string | null;
          counts: Record<string, string>;
        }[];
      };
    };
    /** Queues with entries that could not be read. */
    "/api/1/admin/quarantine": {
      answer: {
        items: {
          queue: string;
          length: number;
        }[];
      };
    };
    /** Entries of a queue that could not be read, newest first. */
    "/api/1/admin/quarantine/{queue}": {
      path: {
        queue: string;
      };
      query?: {
        limit?: number | undefined;
        offset?: number | undefined;
      };
      answer: {
        items: Record<string, unknown>[];
        next_offset: number | null;
      };
    };
    /** Every lock that is held now, with its holder and age where it tells them. */
    "/api/1/admin/locks": {
      answer: {
        items: {
          key: string;
          kind: "basic" | "token" | "owner";
          holder: string | null;
          age: number | null;
          ttl: number | null;
          malformed: boolean;
        }[];
      };
    };
    /** The last 200 alerts of all processes, newest first. */
    "/api/1/admin/alerts": {
      answer: {
        items: {
          level: "warning" | "urgent" | "error" | "ops";
          identifier: string;
          text: string;
          host: string;
          occurred_at: number;
        }[];
      };
    };
    /** The last 200 alerts of all processes, newest first. */
    "/api/1/admin/alerts/recent": {
      answer: {
        items: {
          level: "warning" | "urgent" | "error" | "ops";
          identifier: string;
          text: string;
          host: string;
          occurred_at: number;
        }[];
      };
    };
    /** What the handbook says of each alert, and what to do about it. Parts of identifiers in braces vary: `quarantine:{queue}`. */
    "/api/1/admin/alerts/meanings": {
      answer: {
        items: {
          identifier: string;
          section: string;
          means: string;
          remedy: string;
        }[];
      };
    };
    /** Every declared key and channel. */
    "/api/1/admin/keys": {
      answer: {
        items: {
          pattern: string;
          kind: "key" | "channel";
          /** The Redis type, or `channel` */
          type: string;
          family: string;
          domain: string;
          /** Null: never expires. A number: seconds at most. A text where seconds do not tell it */
          ttl: null | number | string;
          origin: "documented" | "carillon";
          doc: string;
        }[];
      };
    };
    /** What a key, channel or pattern means, and what the key holds now. A name that nobody declared is answered with the patterns most like it. Secret values are withheld. */
    "/api/1/admin/keys/explain": {
      query: {
        name: string;
      };
      answer: {
        known: true;
        kind: "key" | "channel";
        pattern: string;
        parameters: Record<string, string> | null;
        type: string;
        family: string;
        domain: string;
        ttl: string;
        origin: string;
        shape: string;
        doc: string;
        shared: boolean;
        secret: boolean;
        cache: boolean;
        live?: {
          exists: false;
        } | {
          exists: true;
          type: string;
          /** Seconds; null: never */
          expires_in: number | null;
          bytes: number;
          length: number | null;
          /** Decoded; absent when it is withheld, too large or undecodable */
          value: unknown;
          /** Of a zset: the score of each element of `value`; null for one that has left since */
          scores?: (number | null)[];
          complete: boolean;
          /** Why there is no value */
          note?: string;
        };
      } | {
        known: false;
        name: string;
        near: {
          pattern: string;
          kind: "key" | "channel";
          doc: string;
        }[];
      };
    };
    /** Some live keys of a pattern; of a secret one none. A large keyspace is not searched to its end; `complete` tells whether these are all. */
    "/api/1/admin/keys/examples": {
      query: {
        pattern: string;
        limit?: number | undefined;
      };
      answer: {
        items: string[];
        complete: boolean;
      };
    };
    /** What the last audit found, with the count and weight of every pattern; null when there was none. */
    "/api/1/admin/keys/audit": {
      answer: {
        audit: {
          ok: boolean;
          started_at: number;
          seconds: number;
          deep: boolean;
          keys: number;
          bytes: number;
          /** All findings; `findings` lists the first few of each kind and pattern */
          found: number;
          counts: {
            kind: "unknown_key" | "wrong_type" | "undecodable_value" | "missing_ttl" | "forbidden_ttl" | "excessive_ttl" | "broken_invariant";
            pattern: string | null;
            count: number;
          }[];
          findings: {
            kind: "unknown_key" | "wrong_type" | "undecodable_value" | "missing_ttl" | "forbidden_ttl" | "excessive_ttl" | "broken_invariant";
            pattern: string | null;
            key: string | null;
            detail: string;
          }[];
          /** How many rules over several keys were checked */
          invariants: number;
          patterns: {
            pattern: string;
            domain: string;
            family: string;
            type: string;
            keys: number;
            bytes: number;
            /** Elements of collections, bytes of strings */
            length: number;
            /** Values that were too large to read */
            unread: number;
          }[];
          unknown: {
            prefix: string;
            keys: number;
            bytes: number;
          }[];
        } | null;
      };
    };
    /** Every setting of the process that answers: value, source, meaning; secrets masked. */
    "/api/1/admin/settings": {
      answer: {
        items: {
          name: string;
          env: string;
          value: unknown;
          default: unknown;
          source: "environment" | ".env" | "default" | "override";
          unit?: string;
          secret: boolean;
          doc: string;
        }[];
      };
    };
    /** See how far an upload is. Lists the first hundred missing parts, so that a client can go on after an interruption. */
    "/api/1/file_uploads/{uid}": {
      path: {
        uid: string;
      };
      query?: {
        /** The upload's token; the Authorization header wins */
        jwt?: string | undefined;
      };
      answer: {
        state: "open" | "completed" | "expired" | "aborted";
        parts_total: number;
        parts_done: number;
        missing: number[];
        expires_at: number;
      };
    };
    /** List the objects that wait for deletion, the earliest first. */
    "/api/1/admin/files/purgatory": {
      query?: {
        limit?: number | undefined;
        cursor?: string | undefined;
      };
      answer: {
        items: {
          bucket: string | null;
          key: string | null;
          expected: boolean;
          hint: string | null;
          due_at: number;
          /** The member, when it is not what it should be */
          malformed: string | null;
        }[];
        next: string | null;
      };
    };
    /** Units, whose turn it is, builds, and what happened lately. */
    "/api/1/admin/deployments": {
      answer: {
        units: ({
          repo: string;
          kind: "plain" | "build";
          lock: {
            expires_in: number;
          } | null;
          build_hash: string | null;
          subscribers: number;
        })[];
        builds: {
          repo: string;
          sha: string;
          state: "requested" | "building" | "ready" | "failed";
          committed_at: number;
          finished_at: number | null;
          error: string | null;
          size: number | null;
        }[];
        events: {
          repo: string;
          instance: string;
          event: string;
          sha: string | null;
          created_at: number;
        }[];
      };
    };
    /** Third parties that are called slowly on purpose, and when each is free again. */
    "/api/1/admin/api_limiters": {
      answer: {
        items: {
          api: string;
          intervals: Record<string, number>;
          last_used_at: number | null;
          next_free_at: number;
        }[];
      };
    };
    /** Who carries push notifications, texts and mails, the preferred one of each first, and who is passed over now. */
    "/api/1/admin/providers": {
      answer: {
        items: {
          channel: "push" | "sms" | "email";
          provider: string;
          /** Within the last five minutes */
          outages: number;
          /** Its circuit is open: the next provider takes over */
          open: boolean;
        }[];
      };
    };
    /** Where the simulated providers answer. */
    "/api/1/sandbox": {
      answer: {
        url: string;
        smtp_url: string;
        public_url: string;
        twilio: {
          account_sid: string;
          number: string;
          stopped: string[];
        };
        sns: {
          topic_arn: string;
          certificate_url: string;
          confirmed: boolean;
          /** Reports that nobody had subscribed to */
          lost: number;
        };
        messages: number;
      };
    };
    /** Whether the caller could open the inbox of simulated providers: they run here, and the caller is on this machine. */
    "/api/1/admin/sandbox": {
      answer: {
        can_open: boolean;
      };
    };
    /** Where the page of the inbox was before: leads to where it is now. */
    "/sandbox/inbox": {
      answer: unknown;
    };
    /** What was sent to the simulated providers, newest first. */
    "/api/1/sandbox/messages": {
      query?: {
        channel?: "push" | "sms" | "email" | undefined;
        /** A part of the receiver's address */
        to?: string | undefined;
        subject?: string | undefined;
        /** Unix seconds; only later ones */
        since?: number | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: {
          id: string;
          channel: "push" | "sms" | "email";
          direction: "out" | "in";
          provider: "expo" | "twilio" | "ses" | "smtp";
          provider_id: string;
          to: string;
          from: string | null;
          subject: string | null;
          template: string | null;
          text: string;
          at: number;
          status: string;
        }[];
      };
    };
    /** The newest message that fits, as soon as there is one; 204 when there is none in time. */
    "/api/1/sandbox/messages/wait": {
      query?: {
        channel?: "push" | "sms" | "email" | undefined;
        /** A part of the receiver's address */
        to?: string | undefined;
        subject?: string | undefined;
        /** Unix seconds; only later ones */
        since?: number | undefined;
        timeout?: number | undefined;
      };
      answer: {
        id: string;
        channel: "push" | "sms" | "email";
        direction: "out" | "in";
        provider: "expo" | "twilio" | "ses" | "smtp";
        provider_id: string;
        to: string;
        from: string | null;
        subject: string | null;
        template: string | null;
        text: string;
        at: number;
        status: string;
        history: {
          status: string;
          at: number;
          error: string | null;
        }[];
        webhooks: {
          kind: string;
          url: string;
          at: number;
          answered: number | null;
        }[];
        fields: Record<string, unknown>;
        mail: {
          html: string | null;
          headers: {
            name: string;
            value: string;
          }[];
          attachments: {
            filename: string | null;
            content_type: string;
            size: number;
            inline: boolean;
          }[];
          links: string[];
          code: string | null;
          one_click_url: string | null;
        } | null;
      };
    };
    /** One message with everything that happened to it. */
    "/api/1/sandbox/messages/{id}": {
      path: {
        id: string;
      };
      answer: {
        id: string;
        channel: "push" | "sms" | "email";
        direction: "out" | "in";
        provider: "expo" | "twilio" | "ses" | "smtp";
        provider_id: string;
        to: string;
        from: string | null;
        subject: string | null;
        template: string | null;
        text: string;
        at: number;
        status: string;
        history: {
          status: string;
          at: number;
          error: string | null;
        }[];
        webhooks: {
          kind: string;
          url: string;
          at: number;
          answered: number | null;
        }[];
        fields: Record<string, unknown>;
        mail: {
          html: string | null;
          headers: {
            name: string;
            value: string;
          }[];
          attachments: {
            filename: string | null;
            content_type: string;
            size: number;
            inline: boolean;
          }[];
          links: string[];
          code: string | null;
          one_click_url: string | null;
        } | null;
      };
    };
    /** A mail as it was sent, to save and open in a mail program. */
    "/api/1/sandbox/messages/{id}/raw": {
      path: {
        id: string;
      };
      answer: unknown;
    };
    /** The HTML of a mail, for a frame in which nothing runs. */
    "/api/1/sandbox/messages/{id}/html": {
      path: {
        id: string;
      };
      answer: unknown;
    };
    /** What was sent to the simulated providers, newest first. */
    "/sandbox/api/inbox": {
      query?: {
        channel?: "push" | "sms" | "email" | undefined;
        /** A part of the receiver's address */
        to?: string | undefined;
        subject?: string | undefined;
        /** Unix seconds; only later ones */
        since?: number | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: {
          id: string;
          channel: "push" | "sms" | "email";
          direction: "out" | "in";
          provider: "expo" | "twilio" | "ses" | "smtp";
          provider_id: string;
          to: string;
          from: string | null;
          subject: string | null;
          template: string | null;
          text: string;
          at: number;
          status: string;
        }[];
      };
    };
    /** The newest message that fits, as soon as there is one; 204 when there is none in time. */
    "/sandbox/api/inbox/wait": {
      query?: {
        channel?: "push" | "sms" | "email" | undefined;
        /** A part of the receiver's address */
        to?: string | undefined;
        subject?: string | undefined;
        /** Unix seconds; only later ones */
        since?: number | undefined;
        timeout?: number | undefined;
      };
      answer: {
        id: string;
        channel: "push" | "sms" | "email";
        direction: "out" | "in";
        provider: "expo" | "twilio" | "ses" | "smtp";
        provider_id: string;
        to: string;
        from: string | null;
        subject: string | null;
        template: string | null;
        text: string;
        at: number;
        status: string;
        history: {
          status: string;
          at: number;
          error: string | null;
        }[];
        webhooks: {
          kind: string;
          url: string;
          at: number;
          answered: number | null;
        }[];
        fields: Record<string, unknown>;
        mail: {
          html: string | null;
          headers: {
            name: string;
            value: string;
          }[];
          attachments: {
            filename: string | null;
            content_type: string;
            size: number;
            inline: boolean;
          }[];
          links: string[];
          code: string | null;
          one_click_url: string | null;
        } | null;
      };
    };
    /** One message with everything that happened to it. */
    "/sandbox/api/inbox/{id}": {
      path: {
        id: string;
      };
      answer: {
        id: string;
        channel: "push" | "sms" | "email";
        direction: "out" | "in";
        provider: "expo" | "twilio" | "ses" | "smtp";
        provider_id: string;
        to: string;
        from: string | null;
        subject: string | null;
        template: string | null;
        text: string;
        at: number;
        status: string;
        history: {
          status: string;
          at: number;
          error: string | null;
        }[];
        webhooks: {
          kind: string;
          url: string;
          at: number;
          answered: number | null;
        }[];
        fields: Record<string, unknown>;
        mail: {
          html: string | null;
          headers: {
            name: string;
            value: string;
          }[];
          attachments: {
            filename: string | null;
            content_type: string;
            size: number;
            inline: boolean;
          }[];
          links: string[];
          code: string | null;
          one_click_url: string | null;
        } | null;
      };
    };
    /** A mail as it was sent, to save and open in a mail program. */
    "/sandbox/api/inbox/{id}/raw": {
      path: {
        id: string;
      };
      answer: unknown;
    };
    /** The HTML of a mail, for a frame in which nothing runs. */
    "/sandbox/api/inbox/{id}/html": {
      path: {
        id: string;
      };
      answer: unknown;
    };
    /** What somebody got, newest first, with the codes of the links in it. */
    "/sandbox/api/recipients/{to}": {
      path: {
        /** An address, a number or a push token */
        to: string;
      };
      answer: {
        items: {
          id: string;
          channel: "push" | "sms" | "email";
          direction: "out" | "in";
          provider: "expo" | "twilio" | "ses" | "smtp";
          provider_id: string;
          to: string;
          from: string | null;
          subject: string | null;
          template: string | null;
          text: string;
          at: number;
          status: string;
          codes: string[];
        }[];
      };
    };
    /** How the simulated providers misbehave right now. */
    "/api/1/sandbox/knobs": {
      answer: {
        expo: {
          failNext: {
            status: number;
            count: number;
          } | null;
          errorRate: number;
          latencyMs: number;
          dropConnectionAfterAccept: boolean | number;
          ticketErrors: Record<string, "DeviceNotRegistered" | "MessageTooBig" | "MessageRateExceeded" | "MismatchSenderId" | "InvalidCredentials" | string>;
          receiptErrors: Record<string, "DeviceNotRegistered" | "MessageTooBig" | "MessageRateExceeded" | "MismatchSenderId" | "InvalidCredentials" | string>;
          receiptNever: string[];
          receiptDelaySeconds: number;
          malformed: "json" | "structure" | "count" | "errors" | "item" | null;
          projects: Record<string, string>;
          ratePerSecond: number | null;
          outage: {
            from: number;
            until: number;
          } | {
            from: number;
            until: number;
          }[] | null;
          faultRates: Partial<Record<"400" | "429" | "500" | "503" | "reset" | "silence" | "cut_after_accept" | "malformed_json" | "malformed_structure" | "malformed_count", number>>;
          messageFaultRates: Partial<Record<"ticket_error" | "receipt_error" | "receipt_never", number>>;
        };
        twilio: {
          failNext: {
            status: number;
            count: number;
            code?: number | null;
          } | null;
          errorRate: number;
          latencyMs: number;
          dropConnectionAfterCreate: boolean | number;
          stepSeconds: number;
          finalStatus: Record<string, {
            status: "sent" | "delivered" | "read" | "failed" | "undelivered" | "canceled";
            code?: number;
          }>;
          stuckAt: "accepted" | "queued" | "sending" | "sent" | "delivered" | null;
          callbacks: "on" | "off" | "delay" | "duplicate" | "reorder" | "badSignature" | "blankField";
          callbackDelaySeconds: number;
          deleteResource: string | string[] | null;
          malformed: "json" | "structure" | null;
          ratePerSecond: number | null;
          outage: {
            from: number;
            until: number;
          } | {
            from: number;
            until: number;
          }[] | null;
          faultRates: Partial<Record<"400" | "429" | "500" | "503" | "reset" | "silence" | "cut_after_create" | "malformed_json" | "malformed_structure", number>>;
          messageFaultRates: Partial<Record<"failed" | "undelivered" | "canceled" | "stuck", number>>;
          callbackFaultRates: Partial<Record<"off" | "delay" | "duplicate" | "reorder" | "badSignature" | "blankField", number>>;
        };
        ses: {
          latency_ms: number;
          error_rate: number;
          error: "500" | "503" | "throttle" | "credentials" | "reset" | "timeout-after-accept" | "no-message-id" | "TooManyRequestsException" | "ThrottlingException" | "LimitExceededException" | "MessageRejected" | "BadRequestException" | "NotFoundException" | "AccountSuspendedException" | "SendingPausedException" | "MailFromDomainNotVerifiedException" | "ExpiredTokenException" | "UnrecognizedClientException" | "InvalidClientTokenId" | "SignatureDoesNotMatch" | "AccessDeniedException" | "InternalFailure" | "ServiceUnavailable";
          fail_next: number;
          max_per_second: number | null;
          quota_24h: number | null;
          notify_delay_s: number;
          notify_before_response: boolean;
          drop_notifications: boolean;
          duplicate_notifications: number;
          reorder: boolean;
          bad_signature: boolean;
          wrong_topic: boolean;
          foreign_cert_url: boolean;
          oversized_body: boolean;
          unknown_type: boolean;
          signature_version: "1" | "2";
          rules: {
            pattern: string;
            outcome: "success" | "bounce" | "ooto" | "complaint" | "suppressionlist" | "silent";
          }[];
          outage: {
            from: number;
            until: number;
          } | {
            from: number;
            until: number;
          }[] | null;
          fault_rates: Partial<Record<"500" | "503" | "throttle" | "credentials" | "reset" | "timeout-after-accept" | "no-message-id" | "TooManyRequestsException" | "ThrottlingException" | "LimitExceededException" | "MessageRejected" | "BadRequestException" | "NotFoundException" | "AccountSuspendedException" | "SendingPausedException" | "MailFromDomainNotVerifiedException" | "ExpiredTokenException" | "UnrecognizedClientException" | "InvalidClientTokenId" | "SignatureDoesNotMatch" | "AccessDeniedException" | "InternalFailure" | "ServiceUnavailable", number>>;
          mail_fault_rates: Partial<Record<"bounce" | "ooto" | "complaint" | "silent", number>>;
          notice_fault_rates: Partial<Record<"dropped" | "duplicated" | "reordered" | "bad_signature" | "wrong_topic" | "foreign_cert_url" | "oversized_body" | "unknown_type", number>>;
        };
        recipients: {
          previewBots: number;
          deliver: Record<string, "never" | {
            after: number;
          } | {
            fail: "permanent";
          } | {
            fail: "transient";
            times: number;
          }>;
          dropCallbacks: boolean;
        };
      };
    };
    /** Every family of statistics, and where its numbers are. */
    "/api/1/admin/stats": {
      answer: {
        items: {
          name: string;
          [name: string]: unknown;
        }[];
      };
    };
    /** How far each family has been moved to SQL, and whether its numbers agreed. */
    "/api/1/admin/stats/health": {
      answer: {
        families: ({
          name: string;
          earliest: string | null;
          days_late: number;
          last_rotation: {
            retrieved_for: string;
            outcome: string;
            at: number;
            [name: string]: unknown;
          } | null;
          last_mismatch: {
            retrieved_for: string;
            outcome: string;
            at: number;
            [name: string]: unknown;
          } | null;
        })[];
        deltas_waiting: number;
      };
    };
    /** A chart of the latest finished days. `labels` has a date for each day, every event a number for each, `{event}_breakdown` the same for each key of its breakdown; a breakdown that is declared sparse has numbers by the index of the label. Days that may still change are not in it. */
    "/api/1/admin/stats/{family}/daily": {
      path: {
        family: string;
      };
      query?: {
        /** How many days the chart spans */
        days?: "30" | "90" | "182" | "365" | undefined;
        /** `csv`: a row a day, a column for each event and each key of its breakdown */
        format?: "json" | "csv" | undefined;
      };
      answer: {
        labels: string[];
        [name: string]: unknown;
      };
    };
    /** Any days, one by one or together by week or month. Both ends are included, and open days are as they are now; dates in the future are taken as today. Weeks are labelled by their Monday. */
    "/api/1/admin/stats/{family}/range": {
      path: {
        family: string;
      };
      query: {
        /** YYYY-MM-DD in the statistics timezone */
        from: string;
        /** YYYY-MM-DD in the statistics timezone */
        to: string;
        /** What becomes one number */
        group?: "day" | "week" | "month" | undefined;
        /** `csv`: a row a day, a column for each event and each key of its breakdown */
        format?: "json" | "csv" | undefined;
      };
      answer: {
        labels: string[];
        [name: string]: unknown;
      };
    };
    /** The days that may still change, as they are now. */
    "/api/1/admin/stats/{family}/partial": {
      path: {
        family: string;
      };
      answer: {
        today: Record<string, unknown>;
        checked_at: number;
        [name: string]: unknown;
      };
    };
    /** Contact methods: a chart of the latest finished days. `labels` has a date for each day, every event a number for each, `{event}_breakdown` the same for each key of its breakdown; a breakdown that is declared sparse has numbers by the index of the label. Days that may still change are not in it. */
    "/api/1/admin/contact_methods/contact_method_stats": {
      query?: {
        /** How many days the chart spans */
        days?: "30" | "90" | "182" | "365" | undefined;
        /** `csv`: a row a day, a column for each event and each key of its breakdown */
        format?: "json" | "csv" | undefined;
      };
      answer: {
        labels: string[];
        [name: string]: unknown;
      };
    };
    /** Contact methods: a chart of the latest finished days. `labels` has a date for each day, every event a number for each, `{event}_breakdown` the same for each key of its breakdown; a breakdown that is declared sparse has numbers by the index of the label. Days that may still change are not in it. */
    "/api/1/admin/contact_methods/daily_contact_methods": {
      query?: {
        /** How many days the chart spans */
        days?: "30" | "90" | "182" | "365" | undefined;
        /** `csv`: a row a day, a column for each event and each key of its breakdown */
        format?: "json" | "csv" | undefined;
      };
      answer: {
        labels: string[];
        [name: string]: unknown;
      };
    };
    /** Contact methods: the days that may still change, as they are now. */
    "/api/1/admin/contact_methods/partial_contact_method_stats": {
      answer: {
        today: Record<string, unknown>;
        checked_at: number;
        [name: string]: unknown;
      };
    };
    /** sent texts: a chart of the latest finished days. `labels` has a date for each day, every event a number for each, `{event}_breakdown` the same for each key of its breakdown; a breakdown that is declared sparse has numbers by the index of the label. Days that may still change are not in it. */
    "/api/1/admin/sms/daily_sms_sends": {
      query?: {
        /** How many days the chart spans */
        days?: "30" | "90" | "182" | "365" | undefined;
        /** `csv`: a row a day, a column for each event and each key of its breakdown */
        format?: "json" | "csv" | undefined;
      };
      answer: {
        labels: string[];
        [name: string]: unknown;
      };
    };
    /** sent texts: the days that may still change, as they are now. */
    "/api/1/admin/sms/partial_sms_send_stats": {
      answer: {
        today: Record<string, unknown>;
        checked_at: number;
        [name: string]: unknown;
      };
    };
    /** silent texts: a chart of the latest finished days. `labels` has a date for each day, every event a number for each, `{event}_breakdown` the same for each key of its breakdown; a breakdown that is declared sparse has numbers by the index of the label. Days that may still change are not in it. */
    "/api/1/admin/sms/daily_sms_polling": {
      query?: {
        /** How many days the chart spans */
        days?: "30" | "90" | "182" | "365" | undefined;
        /** `csv`: a row a day, a column for each event and each key of its breakdown */
        format?: "json" | "csv" | undefined;
      };
      answer: {
        labels: string[];
        [name: string]: unknown;
      };
    };
    /** silent texts: the days that may still change, as they are now. */
    "/api/1/admin/sms/partial_sms_polling_stats": {
      answer: {
        today: Record<string, unknown>;
        checked_at: number;
        [name: string]: unknown;
      };
    };
    /** news of texts: a chart of the latest finished days. `labels` has a date for each day, every event a number for each, `{event}_breakdown` the same for each key of its breakdown; a breakdown that is declared sparse has numbers by the index of the label. Days that may still change are not in it. */
    "/api/1/admin/sms/daily_sms_events": {
      query?: {
        /** How many days the chart spans */
        days?: "30" | "90" | "182" | "365" | undefined;
        /** `csv`: a row a day, a column for each event and each key of its breakdown */
        format?: "json" | "csv" | undefined;
      };
      answer: {
        labels: string[];
        [name: string]: unknown;
      };
    };
    /** news of texts: the days that may still change, as they are now. */
    "/api/1/admin/sms/partial_sms_event_stats": {
      answer: {
        today: Record<string, unknown>;
        checked_at: number;
        [name: string]: unknown;
      };
    };
    /** webhooks about texts: a chart of the latest finished days. `labels` has a date for each day, every event a number for each, `{event}_breakdown` the same for each key of its breakdown; a breakdown that is declared sparse has numbers by the index of the label. Days that may still change are not in it. */
    "/api/1/admin/sms/daily_sms_webhooks": {
      query?: {
        /** How many days the chart spans */
        days?: "30" | "90" | "182" | "365" | undefined;
        /** `csv`: a row a day, a column for each event and each key of its breakdown */
        format?: "json" | "csv" | undefined;
      };
      answer: {
        labels: string[];
        [name: string]: unknown;
      };
    };
    /** webhooks about texts: the days that may still change, as they are now. */
    "/api/1/admin/sms/partial_sms_webhook_stats": {
      answer: {
        today: Record<string, unknown>;
        checked_at: number;
        [name: string]: unknown;
      };
    };
    /** sent mails: a chart of the latest finished days. `labels` has a date for each day, every event a number for each, `{event}_breakdown` the same for each key of its breakdown; a breakdown that is declared sparse has numbers by the index of the label. Days that may still change are not in it. */
    "/api/1/admin/email/daily_email_send": {
      query?: {
        /** How many days the chart spans */
        days?: "30" | "90" | "182" | "365" | undefined;
        /** `csv`: a row a day, a column for each event and each key of its breakdown */
        format?: "json" | "csv" | undefined;
      };
      answer: {
        labels: string[];
        [name: string]: unknown;
      };
    };
    /** sent mails: the days that may still change, as they are now. */
    "/api/1/admin/email/partial_email_send_stats": {
      answer: {
        today: Record<string, unknown>;
        checked_at: number;
        [name: string]: unknown;
      };
    };
    /** news of mails: a chart of the latest finished days. `labels` has a date for each day, every event a number for each, `{event}_breakdown` the same for each key of its breakdown; a breakdown that is declared sparse has numbers by the index of the label. Days that may still change are not in it. */
    "/api/1/admin/email/daily_email_events": {
      query?: {
        /** How many days the chart spans */
        days?: "30" | "90" | "182" | "365" | undefined;
        /** `csv`: a row a day, a column for each event and each key of its breakdown */
        format?: "json" | "csv" | undefined;
      };
      answer: {
        labels: string[];
        [name: string]: unknown;
      };
    };
    /** news of mails: the days that may still change, as they are now. */
    "/api/1/admin/email/partial_email_event_stats": {
      answer: {
        today: Record<string, unknown>;
        checked_at: number;
        [name: string]: unknown;
      };
    };
    /** webhooks about mails: a chart of the latest finished days. `labels` has a date for each day, every event a number for each, `{event}_breakdown` the same for each key of its breakdown; a breakdown that is declared sparse has numbers by the index of the label. Days that may still change are not in it. */
    "/api/1/admin/email/daily_email_webhooks": {
      query?: {
        /** How many days the chart spans */
        days?: "30" | "90" | "182" | "365" | undefined;
        /** `csv`: a row a day, a column for each event and each key of its breakdown */
        format?: "json" | "csv" | undefined;
      };
      answer: {
        labels: string[];
        [name: string]: unknown;
      };
    };
    /** webhooks about mails: the days that may still change, as they are now. */
    "/api/1/admin/email/partial_email_webhook_stats": {
      answer: {
        today: Record<string, unknown>;
        checked_at: number;
        [name: string]: unknown;
      };
    };
    /** Push tokens: a chart of the latest finished days. `labels` has a date for each day, every event a number for each, `{event}_breakdown` the same for each key of its breakdown; a breakdown that is declared sparse has numbers by the index of the label. Days that may still change are not in it. */
    "/api/1/admin/notifs/daily_push_tokens": {
      query?: {
        /** How many days the chart spans */
        days?: "30" | "90" | "182" | "365" | undefined;
        /** `csv`: a row a day, a column for each event and each key of its breakdown */
        format?: "json" | "csv" | undefined;
      };
      answer: {
        labels: string[];
        [name: string]: unknown;
      };
    };
    /** Push tokens: the days that may still change, as they are now. */
    "/api/1/admin/notifs/todays_push_token_stats": {
      answer: {
        today: Record<string, unknown>;
        checked_at: number;
        [name: string]: unknown;
      };
    };
    /** Push tickets: a chart of the latest finished days. `labels` has a date for each day, every event a number for each, `{event}_breakdown` the same for each key of its breakdown; a breakdown that is declared sparse has numbers by the index of the label. Days that may still change are not in it. */
    "/api/1/admin/notifs/daily_push_tickets": {
      query?: {
        /** How many days the chart spans */
        days?: "30" | "90" | "182" | "365" | undefined;
        /** `csv`: a row a day, a column for each event and each key of its breakdown */
        format?: "json" | "csv" | undefined;
      };
      answer: {
        labels: string[];
        [name: string]: unknown;
      };
    };
    /** Push tickets: the days that may still change, as they are now. */
    "/api/1/admin/notifs/partial_push_ticket_stats": {
      answer: {
        today: Record<string, unknown>;
        checked_at: number;
        [name: string]: unknown;
      };
    };
    /** Push receipts: a chart of the latest finished days. `labels` has a date for each day, every event a number for each, `{event}_breakdown` the same for each key of its breakdown; a breakdown that is declared sparse has numbers by the index of the label. Days that may still change are not in it. */
    "/api/1/admin/notifs/daily_push_receipts": {
      query?: {
        /** How many days the chart spans */
        days?: "30" | "90" | "182" | "365" | undefined;
        /** `csv`: a row a day, a column for each event and each key of its breakdown */
        format?: "json" | "csv" | undefined;
      };
      answer: {
        labels: string[];
        [name: string]: unknown;
      };
    };
    /** Push receipts: the days that may still change, as they are now. */
    "/api/1/admin/notifs/partial_push_receipt_stats": {
      answer: {
        today: Record<string, unknown>;
        checked_at: number;
        [name: string]: unknown;
      };
    };
    /** links in messages: a chart of the latest finished days. `labels` has a date for each day, every event a number for each, `{event}_breakdown` the same for each key of its breakdown; a breakdown that is declared sparse has numbers by the index of the label. Days that may still change are not in it. */
    "/api/1/admin/touch/daily_touch_link_stats": {
      query?: {
        /** How many days the chart spans */
        days?: "30" | "90" | "182" | "365" | undefined;
        /** `csv`: a row a day, a column for each event and each key of its breakdown */
        format?: "json" | "csv" | undefined;
      };
      answer: {
        labels: string[];
        [name: string]: unknown;
      };
    };
    /** links in messages: the days that may still change, as they are now. */
    "/api/1/admin/touch/partial_touch_link_stats": {
      answer: {
        today: Record<string, unknown>;
        checked_at: number;
        [name: string]: unknown;
      };
    };
    /** touches: a chart of the latest finished days. `labels` has a date for each day, every event a number for each, `{event}_breakdown` the same for each key of its breakdown; a breakdown that is declared sparse has numbers by the index of the label. Days that may still change are not in it. */
    "/api/1/admin/touch/daily_touch_send": {
      query?: {
        /** How many days the chart spans */
        days?: "30" | "90" | "182" | "365" | undefined;
        /** `csv`: a row a day, a column for each event and each key of its breakdown */
        format?: "json" | "csv" | undefined;
      };
      answer: {
        labels: string[];
        [name: string]: unknown;
      };
    };
    /** touches: the days that may still change, as they are now. */
    "/api/1/admin/touch/partial_touch_send_stats": {
      answer: {
        today: Record<string, unknown>;
        checked_at: number;
        [name: string]: unknown;
      };
    };
    /** touches without an end: a chart of the latest finished days. `labels` has a date for each day, every event a number for each, `{event}_breakdown` the same for each key of its breakdown; a breakdown that is declared sparse has numbers by the index of the label. Days that may still change are not in it. */
    "/api/1/admin/touch/daily_touch_stale": {
      query?: {
        /** How many days the chart spans */
        days?: "30" | "90" | "182" | "365" | undefined;
        /** `csv`: a row a day, a column for each event and each key of its breakdown */
        format?: "json" | "csv" | undefined;
      };
      answer: {
        labels: string[];
        [name: string]: unknown;
      };
    };
    /** touches without an end: the days that may still change, as they are now. */
    "/api/1/admin/touch/partial_touch_stale_stats": {
      answer: {
        today: Record<string, unknown>;
        checked_at: number;
        [name: string]: unknown;
      };
    };
    /** daily reminders: a chart of the latest finished days. `labels` has a date for each day, every event a number for each, `{event}_breakdown` the same for each key of its breakdown; a breakdown that is declared sparse has numbers by the index of the label. Days that may still change are not in it. */
    "/api/1/admin/daily_reminders/daily_reminders": {
      query?: {
        /** How many days the chart spans */
        days?: "30" | "90" | "182" | "365" | undefined;
        /** `csv`: a row a day, a column for each event and each key of its breakdown */
        format?: "json" | "csv" | undefined;
      };
      answer: {
        labels: string[];
        [name: string]: unknown;
      };
    };
    /** daily reminders: the days that may still change, as they are now. */
    "/api/1/admin/daily_reminders/partial_daily_reminder_stats": {
      answer: {
        today: Record<string, unknown>;
        checked_at: number;
        [name: string]: unknown;
      };
    };
    /** people who get reminders: a chart of the latest finished days. `labels` has a date for each day, every event a number for each, `{event}_breakdown` the same for each key of its breakdown; a breakdown that is declared sparse has numbers by the index of the label. Days that may still change are not in it. */
    "/api/1/admin/daily_reminders/daily_reminder_registrations": {
      query?: {
        /** How many days the chart spans */
        days?: "30" | "90" | "182" | "365" | undefined;
        /** `csv`: a row a day, a column for each event and each key of its breakdown */
        format?: "json" | "csv" | undefined;
      };
      answer: {
        labels: string[];
        [name: string]: unknown;
      };
    };
    /** people who get reminders: the days that may still change, as they are now. */
    "/api/1/admin/daily_reminders/partial_daily_reminder_registration_stats": {
      answer: {
        today: Record<string, unknown>;
        checked_at: number;
        [name: string]: unknown;
      };
    };
    /** List webhook endpoints; there are at most 50. */
    "/api/1/admin/webhooks": {
      answer: {
        items: {
          uid: string;
          url: string;
          description: string;
          types: ("touch.delivered" | "touch.failed" | "link.clicked" | "contact.unsubscribed")[];
          enabled: boolean;
          /** `gone`: it answered 410; `failing`: it only failed for days */
          disabled_reason: "admin" | "gone" | "failing" | null;
          disabled_at: number | null;
          failing_since: number | null;
          /** Until when the secret before the present one signs too */
          previous_secret_until: number | null;
          created_at: number;
        }[];
      };
    };
    /** Read a webhook endpoint. */
    "/api/1/admin/webhooks/{uid}": {
      path: {
        uid: string;
      };
      answer: {
        uid: string;
        url: string;
        description: string;
        types: ("touch.delivered" | "touch.failed" | "link.clicked" | "contact.unsubscribed")[];
        enabled: boolean;
        /** `gone`: it answered 410; `failing`: it only failed for days */
        disabled_reason: "admin" | "gone" | "failing" | null;
        disabled_at: number | null;
        failing_since: number | null;
        /** Until when the secret before the present one signs too */
        previous_secret_until: number | null;
        created_at: number;
      };
    };
    /** List what an endpoint was told or will be, the newest first. */
    "/api/1/admin/webhooks/{uid}/messages": {
      path: {
        uid: string;
      };
      query?: {
        status?: "pending" | "delivered" | "failed" | undefined;
        type?: string | undefined;
        before?: number | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: {
          /** The `webhook-id` of its requests */
          uid: string;
          endpoint_uid: string;
          type: string;
          status: "pending" | "delivered" | "failed";
          attempts: number;
          next_attempt_at: number | null;
          last_attempt_at: number | null;
          last_status: number | null;
          last_error: string | null;
          delivered_at: number | null;
          created_at: number;
        }[];
        /** Pass it as `before` for the next page; null at the end */
        next: number | null;
      };
    };
    /** Read a webhook message with what it says. */
    "/api/1/admin/webhook_messages/{uid}": {
      path: {
        uid: string;
      };
      answer: {
        /** The `webhook-id` of its requests */
        uid: string;
        endpoint_uid: string;
        type: string;
        status: "pending" | "delivered" | "failed";
        attempts: number;
        next_attempt_at: number | null;
        last_attempt_at: number | null;
        last_status: number | null;
        last_error: string | null;
        delivered_at: number | null;
        created_at: number;
        payload: Record<string, unknown>;
      };
    };
    /** List how you can be reached. */
    "/api/1/users/me/contact_methods": {
      answer: {
        emails: {
          uid: string;
          receives_notifications: boolean;
          created_at: number;
          value: string;
          verified: boolean;
          /** Nothing is sent to it, whoever has it */
          suppressed: boolean;
        }[];
        phones: {
          uid: string;
          receives_notifications: boolean;
          created_at: number;
          value: string;
          verified: boolean;
          /** Nothing is sent to it, whoever has it */
          suppressed: boolean;
        }[];
        push_tokens: {
          uid: string;
          receives_notifications: boolean;
          created_at: number;
          platform: "ios" | "android" | "generic";
          last_seen_at: number;
          /** When a notification last reached the device */
          last_confirmed_at: number | null;
        }[];
      };
    };
    /** List how a user can be reached. */
    "/api/1/admin/users/{sub}/contact_methods": {
      path: {
        sub: string;
      };
      answer: {
        emails: {
          uid: string;
          receives_notifications: boolean;
          created_at: number;
          value: string;
          verified: boolean;
          /** Nothing is sent to it, whoever has it */
          suppressed: boolean;
        }[];
        phones: {
          uid: string;
          receives_notifications: boolean;
          created_at: number;
          value: string;
          verified: boolean;
          /** Nothing is sent to it, whoever has it */
          suppressed: boolean;
        }[];
        push_tokens: {
          uid: string;
          receives_notifications: boolean;
          created_at: number;
          platform: "ios" | "android" | "generic";
          last_seen_at: number;
          /** When a notification last reached the device */
          last_confirmed_at: number | null;
        }[];
      };
    };
    /** Read what happened to a user's contact methods, the newest first. */
    "/api/1/admin/users/{sub}/contact_method_log": {
      path: {
        sub: string;
      };
      query?: {
        /** `next` of the page before */
        after?: string | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: {
          uid: string;
          channel: "email" | "phone" | "push";
          identifier: string;
          action: "create_verified" | "create_unverified" | "delete" | "verify" | "enable_notifs" | "disable_notifs";
          reason: Record<string, unknown>;
          created_at: number;
        }[];
        next: string | null;
      };
    };
    /** Ask whether to show the choice of reminder times again. */
    "/api/1/users/me/wants_notification_time_prompt": {
      answer: {
        wants_notification_time_prompt: boolean;
        /** Your reminders whose times you chose before there was more to choose */
        channels: ("email" | "sms" | "push")[];
        /** On which you can be reached */
        potential_channels: ("email" | "sms" | "push")[];
      };
    };
    /** Find people by name, email address, phone number or sub, the newest first. */
    "/api/1/admin/people": {
      query?: {
        /** A part of a name, address or number, or the beginning of a sub */
        search?: string | undefined;
        /** `next` of the page before */
        before?: string | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: {
          sub: string;
          uuid: string;
          role: "user" | "organizer" | "admin";
          timezone: string | null;
          given_name: string | null;
          family_name: string | null;
          created_at: number;
          emails: string[];
          phones: string[];
          push_tokens: number;
        }[];
        next: string | null;
      };
    };
    /** List suppressed email addresses, the newest first. */
    "/api/1/admin/suppressed_emails": {
      query?: {
        email?: string | undefined;
        reason?: "User" | "Bounce" | "Complaint" | "Admin" | undefined;
        /** `next` of the page before */
        after?: string | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: {
          uid: string;
          email_address: string;
          reason: "User" | "Bounce" | "Complaint" | "Admin";
          scope: "lists" | "all";
          note: string | null;
          created_at: number;
        }[];
        next: string | null;
      };
    };
    /** Download all suppressed email addresses as CSV. */
    "/api/1/admin/suppressed_emails/export": {
      answer: unknown;
    };
    /** List suppressed email addresses, the newest first. */
    "/api/1/admin/email/suppressions": {
      query?: {
        email?: string | undefined;
        reason?: "User" | "Bounce" | "Complaint" | "Admin" | undefined;
        /** `next` of the page before */
        after?: string | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: {
          uid: string;
          email_address: string;
          reason: "User" | "Bounce" | "Complaint" | "Admin";
          scope: "lists" | "all";
          note: string | null;
          created_at: number;
        }[];
        next: string | null;
      };
    };
    /** Download all suppressed email addresses as CSV. */
    "/api/1/admin/email/suppressions/export": {
      answer: unknown;
    };
    /** List suppressed phone numbers, the newest first. */
    "/api/1/admin/suppressed_phone_numbers": {
      query?: {
        phone_number?: string | undefined;
        reason?: "Stop" | "Unreachable" | "User" | undefined;
        /** `next` of the page before */
        after?: string | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: {
          uid: string;
          phone_number: string;
          reason: "Stop" | "Unreachable" | "User";
          reason_details: Record<string, unknown>;
          created_at: number;
        }[];
        next: string | null;
      };
    };
    /** List suppressed phone numbers, the newest first. */
    "/api/1/admin/sms/suppressed_phone_numbers": {
      query?: {
        phone_number?: string | undefined;
        reason?: "Stop" | "Unreachable" | "User" | undefined;
        /** `next` of the page before */
        after?: string | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: {
          uid: string;
          phone_number: string;
          reason: "Stop" | "Unreachable" | "User";
          reason_details: Record<string, unknown>;
          created_at: number;
        }[];
        next: string | null;
      };
    };
    /** List bounces and complaints, the newest first. */
    "/api/1/admin/email/failures": {
      query?: {
        email?: string | undefined;
        /** `next` of the page before */
        after?: string | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: {
          uid: string;
          email_address: string;
          failure_type: "Bounce" | "Complaint";
          failure_extra: string | null;
          message_id: string | null;
          created_at: number;
        }[];
        next: string | null;
      };
    };
    /** How many texts wait to be sent, and since when. */
    "/api/1/admin/sms/send_queue_info": {
      answer: {
        length: number;
        retrying: number;
        oldest_last_queued_at: number | null;
      };
    };
    /** How many texts have not ended yet. */
    "/api/1/admin/sms/pending_set_info": {
      answer: {
        length: number;
        oldest_due_at: number | null;
        num_overdue: number;
      };
    };
    /** How much news of texts waits, and how old it is. */
    "/api/1/admin/sms/event_queue_info": {
      answer: {
        length: number;
        early: number;
        oldest_information_received_at: number | null;
        oldest_item_delay: number | null;
        newest_information_received_at: number | null;
        newest_item_delay: number | null;
      };
    };
    /** How many texts the provider is to be asked about. */
    "/api/1/admin/sms/recovery_queue_info": {
      answer: {
        length: number;
        purgatory_size: number;
      };
    };
    /** What the last run of sending texts did. */
    "/api/1/admin/sms/last_send_job": {
      answer: Record<string, number | string | null>;
    };
    /** What the last run of finding silent texts did. */
    "/api/1/admin/sms/last_receipt_stale_job": {
      answer: Record<string, number | string | null>;
    };
    /** What the last run of asking about silent texts did. */
    "/api/1/admin/sms/last_receipt_recovery_job": {
      answer: Record<string, number | string | null>;
    };
    /** What the last run of working news in did. */
    "/api/1/admin/sms/last_receipt_reconciliation_job": {
      answer: Record<string, number | string | null>;
    };
    /** A picture that mails show. Named by its contents, so it may be kept for ever. */
    "/api/1/emails/assets/{name}": {
      path: {
        name: string;
      };
      answer: unknown;
    };
    /** Every email template, with the schema of its parameters and examples. */
    "/api/1/admin/email/templates": {
      answer: {
        templates: {
          slug: string;
          title: string;
          doc: string;
          list: string | null;
          /** JSON Schema */
          parameters: Record<string, unknown>;
          secret: string[];
          examples: unknown[];
          /** of the first example */
          subject: string;
          /** seconds; of the first example */
          lifetime: number | null;
          attachments: string[];
        }[];
      };
    };
    /** One email template. */
    "/api/1/admin/email/templates/{slug}": {
      path: {
        slug: string;
      };
      answer: {
        slug: string;
        title: string;
        doc: string;
        list: string | null;
        /** JSON Schema */
        parameters: Record<string, unknown>;
        secret: string[];
        examples: unknown[];
        /** of the first example */
        subject: string;
        /** seconds; of the first example */
        lifetime: number | null;
        attachments: string[];
      };
    };
    /** A template as it would be sent, with the parameters of an example or with these. With `as=html` it can be framed by pages of this server; it runs no scripts there. */
    "/api/1/admin/email/templates/{slug}/preview": {
      path: {
        slug: string;
      };
      query?: {
        example?: number | undefined;
        /** A JSON object, in place of those of the example */
        parameters?: string | undefined;
        as?: "json" | "html" | "text" | undefined;
      };
      answer: {
        subject: string;
        html: string;
        text: string;
        headers: {
          name: string;
          value: string;
        }[];
        bytes: number;
        warnings: string[];
      };
    };
    /** The page behind the link for leaving a list. It shows what its reader gets and can change; opening it changes nothing. */
    "/api/1/emails/unsubscribe/{token}": {
      path: {
        token: string;
      };
      answer: unknown;
    };
    /** How many mails wait to be sent, and since when. */
    "/api/1/admin/email/send_queue_info": {
      answer: {
        length: number;
        urgent: number;
        retrying: number;
        paused: number;
        oldest_last_queued_at: number | null;
      };
    };
    /** How much news of mails waits, and since when. */
    "/api/1/admin/email/event_queue_info": {
      answer: {
        length: number;
        early: number;
        oldest_last_queued_at: number | null;
      };
    };
    /** How many mails await their receipt, and which wait longest. */
    "/api/1/admin/email/receipt_pending_info": {
      answer: {
        count: number;
        oldest_send_accepted_at: number | null;
        items: {
          uid: string;
          message_id: string;
          email: string;
          subject: string;
          template: string;
          template_parameters: Record<string, unknown>;
          send_initially_queued_at: number;
          send_accepted_at: number;
        }[];
      };
    };
    /** What the last run of sending mails did. */
    "/api/1/admin/email/last_send_job": {
      answer: Record<string, number | string | null>;
    };
    /** What the last run of working news in did. */
    "/api/1/admin/email/last_reconciliation_job": {
      answer: Record<string, number | string | null>;
    };
    /** What the last run of giving up on receipts did. */
    "/api/1/admin/email/last_stale_receipt_detection_job": {
      answer: Record<string, number | string | null>;
    };
    /** Whether mails can be sent, how they fare, and who reports on them. */
    "/api/1/admin/email/health": {
      answer: {
        /** Configured ones, the preferred first; none means the sandbox */
        providers: string[];
        sending_enabled: boolean | null;
        quota: {
          max_24h: number;
          sent_24h: number;
          max_per_second: number;
        } | null;
        topics: string[];
        /** When a topic last reported, to the second; null before the first report */
        last_webhook_at: number | null;
        /** Who signs mails with DKIM: the provider, this installation, or as far as it knows nobody */
        signatures: "provider" | "own" | "none";
        /** Of the last seven days; null while the database is away */
        reputation: {
          days: number;
          accepted: number;
          bounced: number;
          complained: number;
          bounce_rate: number;
          bounce_level: "good" | "warning" | "critical";
          complaint_rate: number;
          complaint_level: "good" | "warning" | "critical";
        } | null;
        lists: {
          paused: boolean;
          since: number | null;
          reason: string | null;
          aside: number;
        };
      };
    };
    /** What became of a test mail so far. */
    "/api/1/admin/email/send_test/{job_uid}": {
      path: {
        job_uid: string;
      };
      answer: {
        done: boolean;
        /** Failed if any address did */
        outcome: "delivered" | "failed" | null;
        steps: {
          at: number;
          message: string;
        }[];
      };
    };
    /** Every place on the way of notifications, in one look. */
    "/api/1/admin/notifs/queue_overview": {
      answer: {
        to_send: {
          length: number;
          oldest_last_queued_at: number | null;
        };
        retrying: {
          length: number;
          next_due_at: number | null;
        };
        send_purgatory: number;
        cold: {
          length: number;
          oldest_last_queued_at: number | null;
          num_overdue: number;
        };
        hot: {
          length: number;
          oldest_last_queued_at: number | null;
        };
        ticket_purgatory: number;
        quarantined: number;
        running: {
          send: boolean;
          cold_to_hot: boolean;
          check: boolean;
        };
        checked_at: number;
      };
    };
    /** How many notifications wait to be sent. */
    "/api/1/admin/notifs/send_queue_info": {
      answer: {
        length: number;
        oldest_last_queued_at: number | null;
      };
    };
    /** How many tickets rest before their receipt is asked for. */
    "/api/1/admin/notifs/receipt_cold_set_info": {
      answer: {
        length: number;
        oldest_last_queued_at: number | null;
        num_overdue: number;
      };
    };
    /** How many receipts are to be asked for. */
    "/api/1/admin/notifs/receipt_hot_set_info": {
      answer: {
        length: number;
        oldest_last_queued_at: number | null;
      };
    };
    /** What the last run of the send job did. */
    "/api/1/admin/notifs/last_send_job": {
      answer: {
        started_at: number;
        finished_at: number;
        running_time: number;
        purgatory_size: number;
        [name: string]: unknown;
      };
    };
    /** What the last run of the job from cold to hot did. */
    "/api/1/admin/notifs/last_cold_to_hot_job": {
      answer: {
        started_at: number;
        finished_at: number;
        running_time: number;
        purgatory_size: number;
        [name: string]: unknown;
      };
    };
    /** What the last run of the check job did. */
    "/api/1/admin/notifs/last_check_job": {
      answer: {
        started_at: number;
        finished_at: number;
        running_time: number;
        purgatory_size: number;
        [name: string]: unknown;
      };
    };
    /** How many push tokens there are. */
    "/api/1/admin/notifs/total_push_tokens": {
      answer: {
        total_push_tokens: number;
        checked_at: number;
      };
    };
    /** The page behind a link. Shows chats a preview and sends people on. Fetching it is no click; a code that nobody made looks alike. */
    "/l/{code}": {
      path: {
        code: string;
      };
      answer: unknown;
    };
    /** The page behind a link. Shows chats a preview and sends people on. Fetching it is no click; a code that nobody made looks alike. */
    "/a/{code}": {
      path: {
        code: string;
      };
      answer: unknown;
    };
    /** A link as a QR code. For print and for screens. It is drawn for any code; fetching it is no click. */
    "/l/{code}.svg": {
      path: {
        code: string;
      };
      answer: unknown;
    };
    /** The page for leaving with the link of a mail. It has one form and changes nothing by itself. */
    "/l/{code}/unsubscribe": {
      path: {
        code: string;
      };
      answer: unknown;
    };
    /** How a link looks before it is followed. */
    "/api/1/notifications/preview": {
      query: {
        code: string;
      };
      answer: {
        title: string;
        description: string;
        image: string | null;
        url: string;
      };
    };
    /** How many links are not stored yet, and since when. */
    "/api/1/admin/touch/buffered_link_sorted_set_info": {
      answer: {
        length: number;
        oldest_score: number | null;
      };
    };
    /** How many links wait to be stored. */
    "/api/1/admin/touch/persistable_buffered_link_sorted_set_info": {
      answer: {
        length: number;
        oldest_score: number | null;
        num_overdue: number;
        num_in_purgatory: number;
        min_purgatory_score: number | null;
      };
    };
    /** How many clicks wait for their link to be stored. */
    "/api/1/admin/touch/delayed_link_clicks_sorted_set_info": {
      answer: {
        length: number;
        oldest_score: number | null;
        num_overdue: number;
        num_in_purgatory: number;
        min_purgatory_score: number | null;
      };
    };
    /** What the last run of storing links did. */
    "/api/1/admin/touch/last_persist_link_job": {
      answer: Record<string, number | string | null>;
    };
    /** What the last run of finding links that nobody claimed did. */
    "/api/1/admin/touch/last_leaked_link_detection_job": {
      answer: Record<string, number | string | null>;
    };
    /** What the last run of storing clicks that waited did. */
    "/api/1/admin/touch/last_delayed_click_persist_job": {
      answer: Record<string, number | string | null>;
    };
    /** Everything that is known of a link: where it is in its life, where it leads, who used it. */
    "/api/1/admin/touch/links/{code}": {
      path: {
        code: string;
      };
      answer: {
        state: "buffered" | "persistable" | "persisting" | "persisted" | "gone";
        link: {
          uid: string;
          code: string;
          touch_uid: string;
          page_identifier: string;
          page_extra: Record<string, unknown>;
          preview_identifier: string;
          preview_extra: Record<string, unknown>;
          created_at: number;
        } | null;
        persist_at: number | null;
        /** Uses by programs, by the rule that knew them */
        robots: Record<string, number>;
        clicks: {
          uid: string;
          track_type: "on_click" | "post_login";
          clicked_at: number;
          parent_uid: string | null;
          user_sub: string | null;
          visitor_uid: string | null;
          kept: "buffer" | "delayed" | "sql";
        }[];
      };
    };
    /** Which provider carried how many messages, by day and channel, the latest day first. Counted from the steps of messages that have reached SQL: `accepted` where a provider took one, and how it failed where it did not. */
    "/api/1/admin/providers/carried": {
      query?: {
        /** Today included */
        days?: number | undefined;
      };
      answer: {
        items: {
          date: string;
          channel: string;
          provider: string;
          steps: Record<string, number>;
        }[];
      };
    };
    /** Where a message is now, and what happened to it. `now` says in which queue, set or job it is, and is empty once it has ended; `steps` are its story, each with the seconds until the next. */
    "/api/1/admin/messages/{uid}": {
      path: {
        uid: string;
      };
      answer: {
        uid: string;
        channel: string;
        now: {
          uid: string;
          channel: string;
          place: string;
          state: string;
          since: number | null;
          due: number | null;
          ahead: number | null;
          failed_tries: number | null;
          provider: string | null;
          provider_id: string | null;
        }[];
        steps: {
          channel: string;
          step: string;
          at: number;
          provider: string | null;
          detail: string | null;
          lasted: number | null;
        }[];
        seconds: number | null;
      };
    };
    /** Messages to one address, newest first. The address is an email address, a phone number with its plus sign, or a push token. */
    "/api/1/admin/messages": {
      query: {
        address: string;
        /** `next` of the page before */
        before?: number | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: {
          uid: string;
          channel: string;
          first_at: number;
          last_step: string;
          last_at: number;
        }[];
        next?: number;
      };
    };
    /** The touches that reached somebody, the newest first. */
    "/api/1/admin/touches": {
      query?: {
        /** `next` of the page before */
        before?: number | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: {
          uid: string;
          user_sub: string;
          given_name: string | null;
          family_name: string | null;
          channel: "push" | "sms" | "email";
          event_slug: string | null;
          destination: string;
          created_at: number;
        }[];
        next: number | null;
      };
    };
    /** What happened to a touch: queued, dispatched, accepted, delivered or failed, clicked. */
    "/api/1/admin/touches/{uid}": {
      path: {
        uid: string;
      };
      answer: {
        uid: string;
        /** Null until its trail or its arrival is written */
        subject: {
          user_sub: string;
          given_name: string | null;
          family_name: string | null;
          channel: "push" | "sms" | "email";
          event_slug: string | null;
          event_parameters: Record<string, unknown> | null;
        } | null;
        arrivals: {
          destination: string;
          message: Record<string, unknown>;
          created_at: number;
        }[];
        /** Of its links */
        codes: string[];
        state: string;
        pending: boolean;
        moments: {
          at: number;
          step: string;
          message_uid: string | null;
          provider: string | null;
          detail: string | null;
        }[];
      };
    };
    /** The campaigns and how far they are, the newest first. */
    "/api/1/admin/campaigns": {
      query?: {
        /** `next` of the page before */
        before?: number | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: {
          uid: string;
          channel: "push" | "sms" | "email";
          event_slug: string;
          event_parameters: Record<string, unknown>;
          state: "running" | "finished" | "stopped" | "failed";
          /** Why it failed */
          reason: string | null;
          /** How many people have a touch of it */
          told: number;
          /** The last person that was gone through */
          after_sub: string;
          /** While it runs: how much of everybody it has gone through, from 0 to 1 */
          share: number | null;
          created_at: number;
          ended_at: number | null;
        }[];
        next: number | null;
      };
    };
    /** List touch points: the events that people are told about, and in which words. */
    "/api/1/admin/touch_points": {
      query?: {
        after?: string | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: {
          uid: string;
          event_slug: string;
          event_schema: Record<string, unknown>;
          selection_strategy: "random_with_replacement" | "fixed" | "ordered_resettable";
          messages: {
            sms: {
              priority: number;
              uid: string;
              body_format: string;
              body_parameters: string[];
            }[];
            push: {
              priority: number;
              uid: string;
              title_format: string;
              title_parameters: string[];
              body_format: string;
              body_parameters: string[];
              channel_id: string;
            }[];
            email: {
              priority: number;
              uid: string;
              subject_format: string;
              subject_parameters: string[];
              template: string;
              template_parameters_fixed: Record<string, unknown>;
              template_parameters_substituted: {
                key: (string | number)[];
                format: string;
                parameters: string[];
              }[];
            }[];
          };
          /** Give it back when you change the messages */
          messages_etag: string;
          /** Parameters made of the examples of the schema */
          example: Record<string, unknown>;
          created_at: number;
        }[];
        next: string | null;
      };
    };
    /** Read a touch point. */
    "/api/1/admin/touch_points/{uid}": {
      path: {
        uid: string;
      };
      answer: {
        uid: string;
        event_slug: string;
        event_schema: Record<string, unknown>;
        selection_strategy: "random_with_replacement" | "fixed" | "ordered_resettable";
        messages: {
          sms: {
            priority: number;
            uid: string;
            body_format: string;
            body_parameters: string[];
          }[];
          push: {
            priority: number;
            uid: string;
            title_format: string;
            title_parameters: string[];
            body_format: string;
            body_parameters: string[];
            channel_id: string;
          }[];
          email: {
            priority: number;
            uid: string;
            subject_format: string;
            subject_parameters: string[];
            template: string;
            template_parameters_fixed: Record<string, unknown>;
            template_parameters_substituted: {
              key: (string | number)[];
              format: string;
              parameters: string[];
            }[];
          }[];
        };
        /** Give it back when you change the messages */
        messages_etag: string;
        /** Parameters made of the examples of the schema */
        example: Record<string, unknown>;
        created_at: number;
      };
    };
    /** How many touches wait to be sent, and since when. */
    "/api/1/admin/touch/send_queue_info": {
      answer: {
        length: number;
        oldest_queued_at: number | null;
        purgatory_length: number;
      };
    };
    /** How many rows about touches wait to be written, and since when. */
    "/api/1/admin/touch/log_queue_info": {
      answer: {
        length: number;
        oldest_queued_at: number | null;
        purgatory_length: number;
      };
    };
    /** How many touches have not ended, and since when. */
    "/api/1/admin/touch/pending_sorted_set_info": {
      answer: {
        length: number;
        oldest_score: number | null;
      };
    };
    /** What the last run of sending touches did. */
    "/api/1/admin/touch/last_send_job": {
      answer: Record<string, number | string | null>;
    };
    /** What the last run of writing rows about touches did. */
    "/api/1/admin/touch/last_log_job": {
      answer: Record<string, number | string | null>;
    };
    /** What the last run of finding touches without an end did. */
    "/api/1/admin/touch/last_stale_detection_job": {
      answer: Record<string, number | string | null>;
    };
    /** The touches that reached a person, the newest first. */
    "/api/1/admin/users/{sub}/touches": {
      path: {
        sub: string;
      };
      query?: {
        /** `next` of the page before */
        before?: number | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: {
          uid: string;
          touch_uid: string;
          channel: "push" | "sms" | "email";
          event_slug: string | null;
          destination: string;
          message: Record<string, unknown>;
          created_at: number;
        }[];
        next: number | null;
      };
    };
    /** Every step of the touches of a person, the newest first. */
    "/api/1/admin/users/{sub}/touch_debug_log": {
      path: {
        sub: string;
      };
      query?: {
        /** `next` of the page before */
        before?: number | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: {
          uid: string;
          event: Record<string, unknown>;
          created_at: number;
        }[];
        next: number | null;
      };
    };
    /** What touch points remember of a person. */
    "/api/1/admin/users/{sub}/touch_point_states": {
      path: {
        sub: string;
      };
      query?: {
        /** `next` of the page before */
        before?: number | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: {
          uid: string;
          event_slug: string;
          channel: "push" | "sms" | "email";
          state: unknown;
          version: number;
          updated_at: number;
        }[];
        next: number | null;
      };
    };
    /** Your daily reminders. */
    "/api/1/users/me/daily_reminders": {
      answer: {
        email: {
          uid: string;
          destinations: string[];
          start_time: number;
          end_time: number;
          day_of_week_mask: number;
          created_at: number;
        } | null;
        sms: {
          uid: string;
          destinations: string[];
          start_time: number;
          end_time: number;
          day_of_week_mask: number;
          created_at: number;
        } | null;
        push: {
          uid: string;
          destinations: string[];
          start_time: number;
          end_time: number;
          day_of_week_mask: number;
          created_at: number;
        } | null;
      };
    };
    /** What you would be reminded of in the next 14 days, and when. Each comes once, somewhere between its two times; `assigned_at` is the exact one as soon as it is known. */
    "/api/1/users/me/daily_reminders/next": {
      answer: {
        timezone: string;
        items: {
          date: string;
          weekday: "Sunday" | "Monday" | "Tuesday" | "Wednesday" | "Thursday" | "Friday" | "Saturday";
          channel: "push" | "sms" | "email";
          event_slug: string;
          earliest_at: number;
          latest_at: number;
          earliest_local: string;
          latest_local: string;
          assigned_at: number | null;
          clocks_change: boolean;
        }[];
      };
    };
    /** When you want to be reminded, by channel. */
    "/api/1/users/me/daily_reminder_settings": {
      answer: {
        email: {
          /** Seconds after midnight */
          start: number;
          end: number;
          days: ("Sunday" | "Monday" | "Tuesday" | "Wednesday" | "Thursday" | "Friday" | "Saturday")[];
          /** False where the hours are a time of day, or follow another channel */
          is_real: boolean;
        };
        sms: {
          /** Seconds after midnight */
          start: number;
          end: number;
          days: ("Sunday" | "Monday" | "Tuesday" | "Wednesday" | "Thursday" | "Friday" | "Saturday")[];
          /** False where the hours are a time of day, or follow another channel */
          is_real: boolean;
        };
        push: {
          /** Seconds after midnight */
          start: number;
          end: number;
          days: ("Sunday" | "Monday" | "Tuesday" | "Wednesday" | "Thursday" | "Friday" | "Saturday")[];
          /** False where the hours are a time of day, or follow another channel */
          is_real: boolean;
        };
      };
    };
    /** How many people get reminders, by channel. */
    "/api/1/admin/daily_reminders/counts": {
      answer: {
        email: number;
        sms: number;
        push: number;
      };
    };
    /** How many reminders have a time and wait for it. */
    "/api/1/admin/daily_reminders/queued_info": {
      answer: {
        length: number;
        oldest: number | null;
        overdue: number;
      };
    };
    /** How far the times of each open day are assigned, by zone. */
    "/api/1/admin/daily_reminders/progress_info": {
      answer: {
        earliest_unix_date: number | null;
        progress_by_date_and_timezone: Record<string, Record<string, {
          start_time: number | null;
          uid: string | null;
          finished: boolean;
        }>>;
      };
    };
    /** What the last run of assigning times did. */
    "/api/1/admin/daily_reminders/last_assign_time_job": {
      answer: Record<string, number | string | null>;
    };
    /** What the last run of sending reminders did. */
    "/api/1/admin/daily_reminders/last_send_job": {
      answer: Record<string, number | string | null>;
    };
    /** What a person would be reminded of in the next 14 days, and when. */
    "/api/1/admin/users/{sub}/daily_reminders/next": {
      path: {
        sub: string;
      };
      answer: {
        timezone: string;
        items: {
          date: string;
          weekday: "Sunday" | "Monday" | "Tuesday" | "Wednesday" | "Thursday" | "Friday" | "Saturday";
          channel: "push" | "sms" | "email";
          event_slug: string;
          earliest_at: number;
          latest_at: number;
          earliest_local: string;
          latest_local: string;
          assigned_at: number | null;
          clocks_change: boolean;
        }[];
      };
    };
    /** The daily reminders of a person, and when they want them. */
    "/api/1/admin/users/{sub}/daily_reminders": {
      path: {
        sub: string;
      };
      answer: {
        reminders: {
          email: {
            uid: string;
            destinations: string[];
            start_time: number;
            end_time: number;
            day_of_week_mask: number;
            created_at: number;
          } | null;
          sms: {
            uid: string;
            destinations: string[];
            start_time: number;
            end_time: number;
            day_of_week_mask: number;
            created_at: number;
          } | null;
          push: {
            uid: string;
            destinations: string[];
            start_time: number;
            end_time: number;
            day_of_week_mask: number;
            created_at: number;
          } | null;
        };
        settings: {
          email: {
            /** Seconds after midnight */
            start: number;
            end: number;
            days: ("Sunday" | "Monday" | "Tuesday" | "Wednesday" | "Thursday" | "Friday" | "Saturday")[];
            /** False where the hours are a time of day, or follow another channel */
            is_real: boolean;
          };
          sms: {
            /** Seconds after midnight */
            start: number;
            end: number;
            days: ("Sunday" | "Monday" | "Tuesday" | "Wednesday" | "Thursday" | "Friday" | "Saturday")[];
            /** False where the hours are a time of day, or follow another channel */
            is_real: boolean;
          };
          push: {
            /** Seconds after midnight */
            start: number;
            end: number;
            days: ("Sunday" | "Monday" | "Tuesday" | "Wednesday" | "Thursday" | "Friday" | "Saturday")[];
            /** False where the hours are a time of day, or follow another channel */
            is_real: boolean;
          };
        };
      };
    };
    /** Every choice of times that a person made, the newest first. */
    "/api/1/admin/users/{sub}/daily_reminder_settings_log": {
      path: {
        sub: string;
      };
      query?: {
        before?: number | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: ({
          uid: string;
          channel: "push" | "sms" | "email";
          day_of_week_mask: number;
          time_range: {
            type: "preset";
            preset: "unspecified" | "morning" | "afternoon" | "evening";
          } | {
            type: "explicit";
            start: number;
            end: number;
          };
          reason: Record<string, unknown>;
          created_at: number;
        })[];
        next: number | null;
      };
    };
  };
  post: {
    /** Create a user. */
    "/api/1/admin/users": {
      body: {
        /** IANA timezone name */
        timezone?: string | undefined;
        given_name?: string | null | undefined;
        family_name?: string | null | undefined;
        role?: "user" | "organizer" | "admin" | undefined;
        /** The user's sub */
        sub?: string | undefined;
      };
      answer: {
        sub: string;
        uuid: string;
        role: "user" | "organizer" | "admin";
        timezone: string | null;
        given_name: string | null;
        family_name: string | null;
        /** Unix seconds */
        created_at: number;
      };
    };
    /** End every token issued to a user so far. */
    "/api/1/admin/users/{sub}/revoke_tokens": {
      path: {
        /** The user's sub */
        sub: string;
      };
      answer: unknown;
    };
    /** Sign a browser in with the secret of a sign-in link. The link works once. The answer sets a cookie that admin routes take in place of an admin token. */
    "/api/1/admin/session": {
      body: {
        token: string;
      };
      answer: {
        /** null when no browser is signed in by a cookie */
        session: {
          uid: string;
          label: string;
          address: string;
          user_agent: string;
          created_at: number;
          expires_at: number;
          /** Exact to a minute */
          last_used_at: number;
        } | null;
        /** To be sent as `X-CSRF-Token` with every change */
        csrf_token: string | null;
        statistics_timezone: string;
        environment: "development" | "production";
        /** The server's clock, in unix seconds */
        now: number;
      };
    };
    /** Create an admin token. The answer is the only place where the token ever appears. */
    "/api/1/admin/tokens": {
      body: {
        label: string;
      };
      answer: {
        uid: string;
        label: string;
        created_at: number;
        /** Exact to a minute */
        last_used_at: number | null;
        revoked_at: number | null;
        token: string;
      };
    };
    /** Mint an access token for a user. */
    "/api/1/admin/users/{sub}/access_token": {
      path: {
        sub: string;
      };
      body: {
        /** Seconds */
        expires_in?: number | undefined;
      };
      answer: {
        access_token: string;
        token_type: "Bearer";
        expires_at: number;
      };
    };
    /** Queue a job. */
    "/api/1/admin/jobs": {
      body: {
        name: string;
        kwargs?: Record<string, unknown> | undefined;
        delay?: number | undefined;
        with_progress?: boolean | undefined;
      };
      answer: {
        uid: string;
        progress?: {
          uid: string;
          jwt: string;
        };
      };
    };
    /** Run a recurring job now; its schedule does not change. */
    "/api/1/admin/jobs/recurring/{digest}/run": {
      path: {
        digest: string;
      };
      answer: {
        queued: boolean;
      };
    };
    /** Give a failed job another chance, with fresh counters. */
    "/api/1/admin/jobs/failed/{id}/requeue": {
      path: {
        id: string;
      };
      answer: {
        requeued: number;
      };
    };
    /** Put a quarantined entry back into its queue, as it was or corrected. `score` is when an entry of a schedule or pending set is due, by default now; `member` says whose hash an entry of a pending set is. */
    "/api/1/admin/quarantine/{queue}/{id}/requeue": {
      path: {
        queue: string;
        id: string;
      };
      body: {
        corrected?: string | undefined;
        score?: number | undefined;
        member?: string | undefined;
      };
      answer: {
        queue: string;
        id: string;
      };
    };
    /** Audit the keyspace in a worker, beside all traffic. Its progress is told under `uid`. While an audit runs, another one ends at once. */
    "/api/1/admin/keys/audit": {
      body: {
        deep?: boolean | undefined;
      };
      answer: {
        uid: string;
      };
    };
    /** Upload one part of a file. multipart/form-data with one field named file. Parts may come in any order and at the same time. */
    "/api/1/file_uploads/{uid}/{part}": {
      path: {
        uid: string;
        part: number;
      };
      query?: {
        /** The upload's token; the Authorization header wins */
        jwt?: string | undefined;
      };
      body: FormData;
      answer: {
        /** This part completed the upload */
        done: boolean;
      };
    };
    /** Start the upload of a file. */
    "/api/1/admin/file_uploads": {
      body: {
        name: string;
        content_type: string;
        /** Bytes */
        file_size: number;
      };
      answer: {
        uid: string;
        jwt: string;
        parts: ({
          start_number: number;
          start_byte: number;
          number_of_parts: number;
          part_size: number;
        } | {
          number: number;
          start_byte: number;
          /** Exclusive */
          end_byte: number;
        })[];
        progress: {
          uid: string;
          jwt: string;
        };
      };
    };
    /** Have a file deleted now. */
    "/api/1/admin/files/purgatory": {
      body: {
        bucket: string;
        key: string;
        hint: string;
      };
      answer: unknown;
    };
    /** Ask every instance of a unit to update, one after the other. Takes the deployment secret as a bearer token; at most 10 requests a minute and address. */
    "/api/1/continuous_deployment/update": {
      body: {
        repo: string;
        sha?: string | undefined;
      };
      answer: {
        subscribers: number;
        expected?: number;
      };
    };
    /** End the present turn of a unit, so that the next instance may update. */
    "/api/1/admin/deployments/{repo}/unlock": {
      path: {
        repo: string;
      };
      answer: unknown;
    };
    /** Let something happen to a message: a reply, a delivery, a bounce, a complaint, a failure. */
    "/api/1/sandbox/messages/{id}/actions": {
      path: {
        id: string;
      };
      body: {
        action: "reply";
        text: string;
      } | {
        action: "deliver";
        after_seconds?: number | undefined;
      } | {
        action: "bounce";
        bounce_type?: "Permanent" | "Transient" | "Undetermined" | undefined;
        bounce_sub_type?: string | undefined;
        after_seconds?: number | undefined;
      } | {
        action: "complain";
        feedback_type?: string | undefined;
        after_seconds?: number | undefined;
      } | {
        action: "fail";
        error?: string | undefined;
        status?: "sent" | "delivered" | "read" | "failed" | "undelivered" | "canceled" | undefined;
        code?: number | undefined;
        after_seconds?: number | undefined;
      } | {
        action: "unsubscribe";
      } | {
        action: "resend";
      };
      answer: {
        /** What the called webhook answered; null: nothing, or not yet */
        answered: number | null;
      };
    };
    /** Let something happen to a message: a reply, a delivery, a bounce, a complaint, a failure. */
    "/sandbox/api/inbox/{id}/actions": {
      path: {
        id: string;
      };
      body: {
        action: "reply";
        text: string;
      } | {
        action: "deliver";
        after_seconds?: number | undefined;
      } | {
        action: "bounce";
        bounce_type?: "Permanent" | "Transient" | "Undetermined" | undefined;
        bounce_sub_type?: string | undefined;
        after_seconds?: number | undefined;
      } | {
        action: "complain";
        feedback_type?: string | undefined;
        after_seconds?: number | undefined;
      } | {
        action: "fail";
        error?: string | undefined;
        status?: "sent" | "delivered" | "read" | "failed" | "undelivered" | "canceled" | undefined;
        code?: number | undefined;
        after_seconds?: number | undefined;
      } | {
        action: "unsubscribe";
      } | {
        action: "resend";
      };
      answer: {
        /** What the called webhook answered; null: nothing, or not yet */
        answered: number | null;
      };
    };
    /** Somebody follows a link as a browser does, and perhaps signs in afterwards. */
    "/sandbox/api/recipients/click": {
      body: {
        code: string;
        /** The access token of somebody who is signed in */
        signed_in?: string | undefined;
        visitor?: string | undefined;
        then_login?: {
          token: string;
          after?: number | undefined;
        } | undefined;
      };
      answer: {
        answered: number;
        page: string | null;
        click_uid: string | null;
        /** What the sign-in was answered */
        login: number | null;
      };
    };
    /** Takes the unsubscribe link of their newest mail and sends its form. */
    "/sandbox/api/recipients/{to}/unsubscribe": {
      path: {
        /** An address, a number or a push token */
        to: string;
      };
      answer: {
        /** What the called webhook answered; null: nothing, or not yet */
        answered: number | null;
      };
    };
    /** They send the house a text, such as STOP. */
    "/sandbox/api/recipients/{to}/text": {
      path: {
        /** An address, a number or a push token */
        to: string;
      };
      body: {
        text: string;
      };
      answer: {
        /** What the called webhook answered; null: nothing, or not yet */
        answered: number | null;
      };
    };
    /** A text from a person, as their provider would pass it on. */
    "/api/1/sandbox/sms/inbound": {
      body: {
        from: string;
        to?: string | undefined;
        body: string;
      };
      answer: {
        /** What the called webhook answered; null: nothing, or not yet */
        answered: number | null;
      };
    };
    /** Move the finished days of a family to SQL now. */
    "/api/1/admin/stats/{family}/rotate": {
      path: {
        family: string;
      };
      answer: {
        job_uid: string;
      };
    };
    /** After a Redis that lost its data: let rotation go on where SQL ends. */
    "/api/1/admin/stats/repair": {
      answer: {
        job_uid: string;
      };
    };
    /** Make a webhook endpoint: an address of yours that hears of events. Requests are signed as Standard Webhooks says. Keep the secret: it is not shown again. */
    "/api/1/admin/webhooks": {
      body: {
        /** Begins with https://; without TLS only to the machine itself */
        url: string;
        types: readonly ("touch.delivered" | "touch.failed" | "link.clicked" | "contact.unsubscribed")[];
        description?: string | undefined;
      };
      answer: {
        uid: string;
        url: string;
        description: string;
        types: ("touch.delivered" | "touch.failed" | "link.clicked" | "contact.unsubscribed")[];
        enabled: boolean;
        /** `gone`: it answered 410; `failing`: it only failed for days */
        disabled_reason: "admin" | "gone" | "failing" | null;
        disabled_at: number | null;
        failing_since: number | null;
        /** Until when the secret before the present one signs too */
        previous_secret_until: number | null;
        created_at: number;
        /** `whsec_…`: in this answer and in no later one */
        secret: string;
      };
    };
    /** Give a webhook endpoint a new secret. Requests carry a signature for each valid secret, so the receiver can change over while both are. Say 0 if the old one became known to others. */
    "/api/1/admin/webhooks/{uid}/rotate_secret": {
      path: {
        uid: string;
      };
      body: {
        /** seconds */
        keep_previous_for?: number | undefined;
      };
      answer: {
        uid: string;
        url: string;
        description: string;
        types: ("touch.delivered" | "touch.failed" | "link.clicked" | "contact.unsubscribed")[];
        enabled: boolean;
        /** `gone`: it answered 410; `failing`: it only failed for days */
        disabled_reason: "admin" | "gone" | "failing" | null;
        disabled_at: number | null;
        failing_since: number | null;
        /** Until when the secret before the present one signs too */
        previous_secret_until: number | null;
        created_at: number;
        /** `whsec_…`: in this answer and in no later one */
        secret: string;
      };
    };
    /** Send an event of type `webhook.test` to an endpoint. */
    "/api/1/admin/webhooks/{uid}/test": {
      path: {
        uid: string;
      };
      answer: {
        /** The message that is on its way */
        uid: string;
      };
    };
    /** Send a webhook message once more, whatever became of it. */
    "/api/1/admin/webhook_messages/{uid}/resend": {
      path: {
        uid: string;
      };
      answer: {
        /** The message that is on its way */
        uid: string;
      };
    };
    /** Add an email address. It waits unverified, and no notification is sent to it, until you prove that it is yours. */
    "/api/1/users/me/emails": {
      body: {
        /** An email address; a domain in another script is kept in its ASCII form */
        email: string;
      };
      answer: {
        uid: string;
        email: string;
        created_at: number;
      };
    };
    /** Switch notifications to a contact method on or off. */
    "/api/1/users/me/contact_methods/{uid}/notifications": {
      path: {
        uid: string;
      };
      body: {
        enabled: boolean;
      };
      answer: unknown;
    };
    /** Switch notifications to a contact method off. */
    "/api/1/users/me/contact_methods/{uid}/disable_notifications": {
      path: {
        uid: string;
      };
      answer: unknown;
    };
    /** Register the push token of a device. Send it at every start of the app: a token that is known is refreshed, one of somebody else moves. */
    "/api/1/notifications/push/tokens/": {
      body: {
        /** As the app got it: `ExponentPushToken[…]` */
        push_token: string;
        platform: "ios" | "android" | "generic";
      };
      answer: unknown;
    };
    /** Switch notifications to a device off. */
    "/api/1/notifications/push/tokens/disable": {
      body: {
        /** As the app got it: `ExponentPushToken[…]` */
        push_token: string;
      };
      answer: unknown;
    };
    /** Say how a user can be reached. For addresses that your application knows, and has verified if you say so. What is known already stays as its owner left it, and can only become verified. */
    "/api/1/admin/users/{sub}/contact_methods": {
      path: {
        sub: string;
      };
      body: {
        emails?: readonly {
          /** An email address; a domain in another script is kept in its ASCII form */
          email: string;
          verified: boolean;
        }[] | undefined;
        phones?: readonly {
          /** With the code of its country: +1 415 555 0132 */
          phone_number: string;
          verified: boolean;
          /** Whether the person wants texts at it */
          receives_notifications: boolean;
        }[] | undefined;
        /** Why reminders begin with these: the account is new, or an older list brings them */
        begins?: "account_created" | "klaviyo" | undefined;
      };
      answer: {
        emails: {
          uid: string;
          receives_notifications: boolean;
          created_at: number;
          value: string;
          verified: boolean;
          /** Nothing is sent to it, whoever has it */
          suppressed: boolean;
        }[];
        phones: {
          uid: string;
          receives_notifications: boolean;
          created_at: number;
          value: string;
          verified: boolean;
          /** Nothing is sent to it, whoever has it */
          suppressed: boolean;
        }[];
        push_tokens: {
          uid: string;
          receives_notifications: boolean;
          created_at: number;
          platform: "ios" | "android" | "generic";
          last_seen_at: number;
          /** When a notification last reached the device */
          last_confirmed_at: number | null;
        }[];
      };
    };
    /** Have everybody asked for their reminder times again. */
    "/api/1/admin/daily_reminder_settings_improved": {
      answer: {
        improved_at: number;
      };
    };
    /** Switch notifications to a contact method on or off, on its owner's behalf. */
    "/api/1/admin/users/{sub}/contact_methods/{uid}/notifications": {
      path: {
        sub: string;
        uid: string;
      };
      body: {
        enabled: boolean;
      };
      answer: unknown;
    };
    /** Suppress an email address. No mail of any kind goes to it, whoever has it. A weaker reason is replaced. */
    "/api/1/admin/suppressed_emails": {
      body: {
        /** An email address; a domain in another script is kept in its ASCII form */
        email: string;
        note?: string | undefined;
      };
      answer: {
        uid: string;
        email_address: string;
        reason: "User" | "Bounce" | "Complaint" | "Admin";
        scope: "lists" | "all";
        note: string | null;
        created_at: number;
      };
    };
    /** Suppress the email addresses of a CSV file. The first line names the columns: `email`, and if you like `reason`, `scope`, `note`. Lines that make no sense are left out and named. With `dry_run=true` nothing is written. */
    "/api/1/admin/suppressed_emails/import": {
      query?: {
        dry_run?: string | undefined;
      };
      body?: Blob | ArrayBuffer | string;
      answer: {
        created: number;
        strengthened: number;
        kept: number;
        /** Lines that were left out */
        refused: number;
        faults: {
          line: number;
          reason: string;
        }[];
      };
    };
    /** Suppress an email address. No mail of any kind goes to it, whoever has it. A weaker reason is replaced. */
    "/api/1/admin/email/suppressions": {
      body: {
        /** An email address; a domain in another script is kept in its ASCII form */
        email: string;
        note?: string | undefined;
      };
      answer: {
        uid: string;
        email_address: string;
        reason: "User" | "Bounce" | "Complaint" | "Admin";
        scope: "lists" | "all";
        note: string | null;
        created_at: number;
      };
    };
    /** Suppress the email addresses of a CSV file. The first line names the columns: `email`, and if you like `reason`, `scope`, `note`. Lines that make no sense are left out and named. With `dry_run=true` nothing is written. */
    "/api/1/admin/email/suppressions/import": {
      query?: {
        dry_run?: string | undefined;
      };
      body?: Blob | ArrayBuffer | string;
      answer: {
        created: number;
        strengthened: number;
        kept: number;
        /** Lines that were left out */
        refused: number;
        faults: {
          line: number;
          reason: string;
        }[];
      };
    };
    /** Suppress a phone number. */
    "/api/1/admin/suppressed_phone_numbers": {
      body: {
        phone_number: string;
      };
      answer: {
        uid: string;
        phone_number: string;
        reason: "Stop" | "Unreachable" | "User";
        reason_details: Record<string, unknown>;
        created_at: number;
      };
    };
    /** Suppress a phone number. */
    "/api/1/admin/sms/suppressed_phone_numbers": {
      body: {
        phone_number: string;
      };
      answer: {
        uid: string;
        phone_number: string;
        reason: "Stop" | "Unreachable" | "User";
        reason_details: Record<string, unknown>;
        created_at: number;
      };
    };
    /** How many pieces carriers would bill for a text. */
    "/api/1/admin/sms/estimate": {
      body: {
        body: string;
        recipients?: number | undefined;
      };
      answer: {
        encoding: "GSM-7" | "UCS-2";
        units: number;
        segments: number;
        /** The signs that make every place twice as wide */
        unusual: string[];
        /** Pieces for all recipients together */
        total_segments: number;
      };
    };
    /** Send one text, to see that texts arrive. */
    "/api/1/admin/sms/test_sms": {
      body: {
        phone_number: string;
        body: string;
      };
      answer: {
        uid: string;
      };
    };
    /** A template with these parameters as it would be sent. Nothing is sent or kept. `as=html` and `as=text` answer with one part alone. */
    "/api/1/admin/email/templates/{slug}/preview": {
      path: {
        slug: string;
      };
      query?: {
        as?: "json" | "html" | "text" | undefined;
      };
      body: {
        template_parameters: Record<string, unknown>;
        subject?: string | undefined;
      };
      answer: {
        subject: string;
        html: string;
        text: string;
        headers: {
          name: string;
          value: string;
        }[];
        bytes: number;
        warnings: string[];
      };
    };
    /** Leave the lists with one click. As RFC 8058 asks: no sign-in, no cookie, no redirect, whatever the body is encoded as. Repeating it changes nothing. */
    "/api/1/emails/unsubscribe/{token}": {
      path: {
        token: string;
      };
      body?: Blob | ArrayBuffer | string;
      answer: string;
    };
    /** Take leaving the lists back. Lifts the wish alone; bounces and complaints stay. */
    "/api/1/emails/unsubscribe/{token}/undo": {
      path: {
        token: string;
      };
      body?: Blob | ArrayBuffer | string;
      answer: string;
    };
    /** Stay on some lists and leave the others. A form with `choose=lists` and one `list` for each list that its sender wants; none at all is the same as leaving. */
    "/api/1/emails/unsubscribe/{token}/preferences": {
      path: {
        token: string;
      };
      body?: Blob | ArrayBuffer | string;
      answer: string;
    };
    /** Let mails of lists go on after a pause. What was set aside comes back in order. Only bounces and complaints of later days can pause them again. */
    "/api/1/admin/email/lists/resume": {
      answer: {
        /** False: they were not paused */
        resumed: boolean;
      };
    };
    /** Pause mails of lists; codes and other mails of no list go on. */
    "/api/1/admin/email/lists/pause": {
      body: {
        reason: string;
      };
      answer: unknown;
    };
    /** Send a mail. Queues it; `uid` finds it again in logs, callbacks and the mail itself. Callbacks that are left out are the default ones. */
    "/api/1/admin/email/messages": {
      body: {
        email: string;
        subject?: string | undefined;
        template: string;
        template_parameters: Record<string, unknown>;
        success_job?: {
          name: string;
          kwargs: Record<string, unknown>;
        } | undefined;
        failure_job?: {
          name: string;
          kwargs: Record<string, unknown>;
        } | undefined;
        uid?: string | undefined;
      };
      answer: {
        uid: string;
      };
    };
    /** Send a mail to your own verified addresses, and watch what becomes of it. It is rendered before it is queued. `GET /api/1/admin/email/send_test/{job_uid}` tells what became of it; with `progress_token` it can also be watched live like any job. */
    "/api/1/admin/email/send_test": {
      body: {
        template: string;
        template_parameters: Record<string, unknown>;
        subject?: string | undefined;
      };
      answer: {
        job_uid: string;
        progress_token: string;
        emails: string[];
      };
    };
    /** Send one notification to see whether the channel works. */
    "/api/1/admin/notifs/test_push": {
      body: {
        push_token: string;
        title: string;
        body: string;
        channel_id?: string | null | undefined;
      };
      answer: {
        uid: string;
      };
    };
    /** Follow a link. Keeps the click and redirects to where the link leads. The page behind the link sends this by itself. */
    "/l/{code}": {
      path: {
        code: string;
      };
      answer: unknown;
    };
    /** Follow a link. Keeps the click and redirects to where the link leads. The page behind the link sends this by itself. */
    "/a/{code}": {
      path: {
        code: string;
      };
      answer: unknown;
    };
    /** Leave with the button that a mailbox shows. For `List-Unsubscribe-Post`: the code alone decides, for every address that its mail went to. */
    "/api/1/notifications/one_click/{code}": {
      path: {
        code: string;
      };
      body?: Blob | ArrayBuffer | string;
      answer: Record<string, never>;
    };
    /** Leave with the form behind the link of a mail. */
    "/l/{code}/unsubscribe": {
      path: {
        code: string;
      };
      body?: Blob | ArrayBuffer | string;
      answer: unknown;
    };
    /** Take leaving back with the form behind the link of a mail. Lifts the wish alone; bounces and complaints stay. */
    "/l/{code}/unsubscribe/undo": {
      path: {
        code: string;
      };
      body?: Blob | ArrayBuffer | string;
      answer: unknown;
    };
    /** Leave with the code of a link in a mail. For people who are not signed in: the code proves that they read the mail. */
    "/api/1/notifications/unsubscribe_by_email": {
      body: {
        /** An email address; a domain in another script is kept in its ASCII form */
        email: string;
        code: string;
      };
      answer: Record<string, never>;
    };
    /** Exchange the code of a link for where it leads. The click is kept. Say who you are with `Authorization`, and which visitor with the header `Visitor`. */
    "/api/1/notifications/complete": {
      body: {
        code: string;
      };
      answer: {
        page_identifier: string;
        page_extra: Record<string, unknown>;
        /** Send it to `post_login` if the person signs in now */
        click_uid: string;
      };
    };
    /** Say that you signed in right after a click. Answers the same whether that was kept or not. */
    "/api/1/notifications/post_login": {
      body: {
        code: string;
        uid: string;
      };
      answer: Record<string, never>;
    };
    /** Tell a person about an event. Carillon finds the addresses and the words, makes the links, and follows each message to its end. Send an `Idempotency-Key` to be able to repeat the request for a week. */
    "/api/1/admin/touches": {
      body: {
        user_sub: string;
        touch_point_event_slug: string;
        channels: readonly ("push" | "sms" | "email")[];
        event_parameters?: Record<string, unknown> | undefined;
        links?: readonly {
          /** The parameter of the event that gets the address */
          parameter: string;
          page_identifier?: string | undefined;
          page_extra?: Record<string, unknown> | undefined;
          preview_identifier?: string | undefined;
          preview_extra?: Record<string, unknown> | undefined;
          code_style?: "short" | "normal" | "long" | undefined;
        }[] | undefined;
      };
      answer: {
        touches: {
          /** Follow it with `GET /api/1/admin/touches/{uid}` */
          uid: string;
          user_sub: string;
          channel: "push" | "sms" | "email";
          codes: string[];
        }[];
      };
    };
    /** Tell many people about events. Carillon finds the addresses and the words, makes the links, and follows each message to its end. Send an `Idempotency-Key` to be able to repeat the request for a week. All of them are queued or none. */
    "/api/1/admin/touches/batch": {
      body: {
        touches: readonly {
          user_sub: string;
          touch_point_event_slug: string;
          channels: readonly ("push" | "sms" | "email")[];
          event_parameters?: Record<string, unknown> | undefined;
          links?: readonly {
            /** The parameter of the event that gets the address */
            parameter: string;
            page_identifier?: string | undefined;
            page_extra?: Record<string, unknown> | undefined;
            preview_identifier?: string | undefined;
            preview_extra?: Record<string, unknown> | undefined;
            code_style?: "short" | "normal" | "long" | undefined;
          }[] | undefined;
        }[];
      };
      answer: {
        touches: {
          /** Follow it with `GET /api/1/admin/touches/{uid}` */
          uid: string;
          user_sub: string;
          channel: "push" | "sms" | "email";
          codes: string[];
        }[];
      };
    };
    /** Notify everybody who has a device that wants it. Everybody gets one touch, page by page; while too many touches wait, the campaign waits too. `GET /api/1/admin/campaigns` shows how far it is. */
    "/api/1/admin/notifs/marketing_push": {
      body: {
        touch_point_event_slug: string;
        /** The same for everybody. `name`, `url` and `unsubscribe_url` are each person's own unless given */
        event_parameters?: Record<string, unknown> | undefined;
      };
      answer: {
        job_uid: string;
        /** Of the campaign */
        uid: string;
      };
    };
    /** Text everybody who gets reminders by text. Everybody gets one touch, page by page; while too many touches wait, the campaign waits too. `GET /api/1/admin/campaigns` shows how far it is. */
    "/api/1/admin/sms/marketing_sms": {
      body: {
        touch_point_event_slug: string;
        /** The same for everybody. `name`, `url` and `unsubscribe_url` are each person's own unless given */
        event_parameters?: Record<string, unknown> | undefined;
      };
      answer: {
        job_uid: string;
        /** Of the campaign */
        uid: string;
      };
    };
    /** Write to everybody who has an address that wants it. Everybody gets one touch, page by page; while too many touches wait, the campaign waits too. `GET /api/1/admin/campaigns` shows how far it is. */
    "/api/1/admin/email/announcement": {
      body: {
        touch_point_event_slug: string;
        /** The same for everybody. `name`, `url` and `unsubscribe_url` are each person's own unless given */
        event_parameters?: Record<string, unknown> | undefined;
      };
      answer: {
        job_uid: string;
        /** Of the campaign */
        uid: string;
      };
    };
    /** Whom a campaign would tell if it began now, and in which words. Nothing begins. What could not begin is refused as when it should. */
    "/api/1/admin/campaigns/preview": {
      body: {
        touch_point_event_slug: string;
        /** The same for everybody. `name`, `url` and `unsubscribe_url` are each person's own unless given */
        event_parameters?: Record<string, unknown> | undefined;
        channel: "push" | "sms" | "email";
      };
      answer: {
        /** How many would get a touch */
        people: number;
        everybody: number;
        /** Those that people would get one of, as somebody without a name would read them */
        messages: {
          title?: string;
          body?: string;
          channel_id?: string;
          subject?: string;
          template?: string;
          template_parameters?: Record<string, unknown>;
        }[];
      };
    };
    /** Make a touch point. Messages are formats: `Hello {name}`, `{event.title}`, `{{` for a brace. Each uses exactly the parameters that it declares, and the schema has them all. */
    "/api/1/admin/touch_points": {
      body: {
        event_slug: string;
        event_schema?: Record<string, unknown> | undefined;
        selection_strategy: "random_with_replacement" | "fixed" | "ordered_resettable";
        messages: {
          sms?: readonly {
            priority: number;
            uid: string;
            body_format: string;
            body_parameters?: readonly string[] | undefined;
          }[] | undefined;
          push?: readonly {
            priority: number;
            uid: string;
            title_format: string;
            title_parameters?: readonly string[] | undefined;
            body_format: string;
            body_parameters?: readonly string[] | undefined;
            channel_id: string;
          }[] | undefined;
          email?: readonly {
            priority: number;
            uid: string;
            subject_format: string;
            subject_parameters?: readonly string[] | undefined;
            template: string;
            template_parameters_fixed?: Record<string, unknown> | undefined;
            template_parameters_substituted?: readonly {
              key: readonly (string | number)[];
              format: string;
              parameters?: readonly string[] | undefined;
            }[] | undefined;
          }[] | undefined;
        };
      };
      answer: {
        uid: string;
        event_slug: string;
        event_schema: Record<string, unknown>;
        selection_strategy: "random_with_replacement" | "fixed" | "ordered_resettable";
        messages: {
          sms: {
            priority: number;
            uid: string;
            body_format: string;
            body_parameters: string[];
          }[];
          push: {
            priority: number;
            uid: string;
            title_format: string;
            title_parameters: string[];
            body_format: string;
            body_parameters: string[];
            channel_id: string;
          }[];
          email: {
            priority: number;
            uid: string;
            subject_format: string;
            subject_parameters: string[];
            template: string;
            template_parameters_fixed: Record<string, unknown>;
            template_parameters_substituted: {
              key: (string | number)[];
              format: string;
              parameters: string[];
            }[];
          }[];
        };
        /** Give it back when you change the messages */
        messages_etag: string;
        /** Parameters made of the examples of the schema */
        example: Record<string, unknown>;
        created_at: number;
      };
    };
    /** Search touch points by a part of their slug. */
    "/api/1/admin/touch_points/search": {
      body: {
        contains?: string | undefined;
        after?: string | undefined;
        limit?: number | undefined;
      };
      answer: {
        items: {
          uid: string;
          event_slug: string;
          event_schema: Record<string, unknown>;
          selection_strategy: "random_with_replacement" | "fixed" | "ordered_resettable";
          messages: {
            sms: {
              priority: number;
              uid: string;
              body_format: string;
              body_parameters: string[];
            }[];
            push: {
              priority: number;
              uid: string;
              title_format: string;
              title_parameters: string[];
              body_format: string;
              body_parameters: string[];
              channel_id: string;
            }[];
            email: {
              priority: number;
              uid: string;
              subject_format: string;
              subject_parameters: string[];
              template: string;
              template_parameters_fixed: Record<string, unknown>;
              template_parameters_substituted: {
                key: (string | number)[];
                format: string;
                parameters: string[];
              }[];
            }[];
          };
          /** Give it back when you change the messages */
          messages_etag: string;
          /** Parameters made of the examples of the schema */
          example: Record<string, unknown>;
          created_at: number;
        }[];
        next: string | null;
      };
    };
    /** What a message would say, before it is saved. Of a mail it answers the subject and the parameters of its template; `POST /api/1/admin/email/templates/{slug}/preview` shows the whole mail. */
    "/api/1/admin/touch_points/preview": {
      body: {
        channel: "push" | "sms" | "email";
        message: {
          priority: number;
          uid: string;
          body_format: string;
          body_parameters?: readonly string[] | undefined;
        } | {
          priority: number;
          uid: string;
          title_format: string;
          title_parameters?: readonly string[] | undefined;
          body_format: string;
          body_parameters?: readonly string[] | undefined;
          channel_id: string;
        } | {
          priority: number;
          uid: string;
          subject_format: string;
          subject_parameters?: readonly string[] | undefined;
          template: string;
          template_parameters_fixed?: Record<string, unknown> | undefined;
          template_parameters_substituted?: readonly {
            key: readonly (string | number)[];
            format: string;
            parameters?: readonly string[] | undefined;
          }[] | undefined;
        };
        event_parameters?: Record<string, unknown> | undefined;
      };
      answer: {
        title?: string;
        body?: string;
        channel_id?: string;
        subject?: string;
        template?: string;
        template_parameters?: Record<string, unknown>;
      };
    };
    /** Send yourself a message of a touch point. To at most three of your own addresses; nothing is remembered of it. With `progress_token` the job can be watched like any other: it tells the uids of the messages, for `carillon trace`. */
    "/api/1/admin/touch_points/{uid}/test": {
      path: {
        uid: string;
      };
      body: {
        channel: "push" | "sms" | "email";
        event_parameters?: Record<string, unknown> | undefined;
        message_uid?: string | undefined;
      };
      answer: {
        job_uid: string;
        progress_token: string;
        destinations: string[];
      };
    };
    /** Say when you want to be reminded, and where you are. No day at all ends the reminders of the channel. */
    "/api/1/users/me/attributes/notification_time": {
      body: {
        channel: "push" | "sms" | "email" | "all";
        days_of_week: readonly ("Sunday" | "Monday" | "Tuesday" | "Wednesday" | "Thursday" | "Friday" | "Saturday")[];
        time_range: {
          type: "preset";
          preset: "unspecified" | "morning" | "afternoon" | "evening";
        } | {
          type: "explicit";
          start: number;
          end: number;
        };
        /** IANA timezone name */
        timezone: string;
        timezone_technique: "browser" | "app" | "app-guessed";
      };
      answer: Record<string, never>;
    };
    /** Have everybody asked for their times again. */
    "/api/1/admin/daily_reminders/settings_improved": {
      answer: {
        improved_at: number;
      };
    };
  };
  put: {
    /** Set how one of them misbehaves; what is not named works again. */
    "/sandbox/api/{provider}/faults": {
      path: {
        provider: "expo" | "twilio" | "ses" | "recipients";
      };
      body: Record<string, unknown>;
      answer: {
        expo: {
          failNext: {
            status: number;
            count: number;
          } | null;
          errorRate: number;
          latencyMs: number;
          dropConnectionAfterAccept: boolean | number;
          ticketErrors: Record<string, "DeviceNotRegistered" | "MessageTooBig" | "MessageRateExceeded" | "MismatchSenderId" | "InvalidCredentials" | string>;
          receiptErrors: Record<string, "DeviceNotRegistered" | "MessageTooBig" | "MessageRateExceeded" | "MismatchSenderId" | "InvalidCredentials" | string>;
          receiptNever: string[];
          receiptDelaySeconds: number;
          malformed: "json" | "structure" | "count" | "errors" | "item" | null;
          projects: Record<string, string>;
          ratePerSecond: number | null;
          outage: {
            from: number;
            until: number;
          } | {
            from: number;
            until: number;
          }[] | null;
          faultRates: Partial<Record<"400" | "429" | "500" | "503" | "reset" | "silence" | "cut_after_accept" | "malformed_json" | "malformed_structure" | "malformed_count", number>>;
          messageFaultRates: Partial<Record<"ticket_error" | "receipt_error" | "receipt_never", number>>;
        };
        twilio: {
          failNext: {
            status: number;
            count: number;
            code?: number | null;
          } | null;
          errorRate: number;
          latencyMs: number;
          dropConnectionAfterCreate: boolean | number;
          stepSeconds: number;
          finalStatus: Record<string, {
            status: "sent" | "delivered" | "read" | "failed" | "undelivered" | "canceled";
            code?: number;
          }>;
          stuckAt: "accepted" | "queued" | "sending" | "sent" | "delivered" | null;
          callbacks: "on" | "off" | "delay" | "duplicate" | "reorder" | "badSignature" | "blankField";
          callbackDelaySeconds: number;
          deleteResource: string | string[] | null;
          malformed: "json" | "structure" | null;
          ratePerSecond: number | null;
          outage: {
            from: number;
            until: number;
          } | {
            from: number;
            until: number;
          }[] | null;
          faultRates: Partial<Record<"400" | "429" | "500" | "503" | "reset" | "silence" | "cut_after_create" | "malformed_json" | "malformed_structure", number>>;
          messageFaultRates: Partial<Record<"failed" | "undelivered" | "canceled" | "stuck", number>>;
          callbackFaultRates: Partial<Record<"off" | "delay" | "duplicate" | "reorder" | "badSignature" | "blankField", number>>;
        };
        ses: {
          latency_ms: number;
          error_rate: number;
          error: "500" | "503" | "throttle" | "credentials" | "reset" | "timeout-after-accept" | "no-message-id" | "TooManyRequestsException" | "ThrottlingException" | "LimitExceededException" | "MessageRejected" | "BadRequestException" | "NotFoundException" | "AccountSuspendedException" | "SendingPausedException" | "MailFromDomainNotVerifiedException" | "ExpiredTokenException" | "UnrecognizedClientException" | "InvalidClientTokenId" | "SignatureDoesNotMatch" | "AccessDeniedException" | "InternalFailure" | "ServiceUnavailable";
          fail_next: number;
          max_per_second: number | null;
          quota_24h: number | null;
          notify_delay_s: number;
          notify_before_response: boolean;
          drop_notifications: boolean;
          duplicate_notifications: number;
          reorder: boolean;
          bad_signature: boolean;
          wrong_topic: boolean;
          foreign_cert_url: boolean;
          oversized_body: boolean;
          unknown_type: boolean;
          signature_version: "1" | "2";
          rules: {
            pattern: string;
            outcome: "success" | "bounce" | "ooto" | "complaint" | "suppressionlist" | "silent";
          }[];
          outage: {
            from: number;
            until: number;
          } | {
            from: number;
            until: number;
          }[] | null;
          fault_rates: Partial<Record<"500" | "503" | "throttle" | "credentials" | "reset" | "timeout-after-accept" | "no-message-id" | "TooManyRequestsException" | "ThrottlingException" | "LimitExceededException" | "MessageRejected" | "BadRequestException" | "NotFoundException" | "AccountSuspendedException" | "SendingPausedException" | "MailFromDomainNotVerifiedException" | "ExpiredTokenException" | "UnrecognizedClientException" | "InvalidClientTokenId" | "SignatureDoesNotMatch" | "AccessDeniedException" | "InternalFailure" | "ServiceUnavailable", number>>;
          mail_fault_rates: Partial<Record<"bounce" | "ooto" | "complaint" | "silent", number>>;
          notice_fault_rates: Partial<Record<"dropped" | "duplicated" | "reordered" | "bad_signature" | "wrong_topic" | "foreign_cert_url" | "oversized_body" | "unknown_type", number>>;
        };
        recipients: {
          previewBots: number;
          deliver: Record<string, "never" | {
            after: number;
          } | {
            fail: "permanent";
          } | {
            fail: "transient";
            times: number;
          }>;
          dropCallbacks: boolean;
        };
      };
    };
  };
  patch: {
    /** Change a user. A change of role ends every token that was issued to the user before it. */
    "/api/1/admin/users/{sub}": {
      path: {
        /** The user's sub */
        sub: string;
      };
      body: {
        /** IANA timezone name */
        timezone?: string | undefined;
        given_name?: string | null | undefined;
        family_name?: string | null | undefined;
        role?: "user" | "organizer" | "admin" | undefined;
      };
      answer: {
        sub: string;
        uuid: string;
        role: "user" | "organizer" | "admin";
        timezone: string | null;
        given_name: string | null;
        family_name: string | null;
        /** Unix seconds */
        created_at: number;
      };
    };
    /** Change your own name or timezone. */
    "/api/1/users/me": {
      body: {
        /** IANA timezone name */
        timezone?: string | undefined;
        given_name?: string | null | undefined;
        family_name?: string | null | undefined;
      };
      answer: {
        sub: string;
        uuid: string;
        role: "user" | "organizer" | "admin";
        timezone: string | null;
        given_name: string | null;
        family_name: string | null;
        /** Unix seconds */
        created_at: number;
      };
    };
    /** Change how they misbehave, from the next request on. */
    "/api/1/sandbox/knobs": {
      body: {
        expo?: {
          failNext?: {
            status: number;
            count: number;
          } | null | undefined;
          errorRate?: number | undefined;
          latencyMs?: number | undefined;
          dropConnectionAfterAccept?: boolean | number | undefined;
          ticketErrors?: Record<string, "DeviceNotRegistered" | "MessageTooBig" | "MessageRateExceeded" | "MismatchSenderId" | "InvalidCredentials" | string> | undefined;
          receiptErrors?: Record<string, "DeviceNotRegistered" | "MessageTooBig" | "MessageRateExceeded" | "MismatchSenderId" | "InvalidCredentials" | string> | undefined;
          receiptNever?: readonly string[] | undefined;
          receiptDelaySeconds?: number | undefined;
          malformed?: "json" | "structure" | "count" | "errors" | "item" | null | undefined;
          projects?: Record<string, string> | undefined;
          ratePerSecond?: number | null | undefined;
          outage?: {
            from: number;
            until: number;
          } | readonly {
            from: number;
            until: number;
          }[] | null | undefined;
          faultRates?: Partial<Record<"400" | "429" | "500" | "503" | "reset" | "silence" | "cut_after_accept" | "malformed_json" | "malformed_structure" | "malformed_count", number>> | undefined;
          messageFaultRates?: Partial<Record<"ticket_error" | "receipt_error" | "receipt_never", number>> | undefined;
        } | undefined;
        twilio?: {
          failNext?: {
            status: number;
            count: number;
            code?: number | null | undefined;
          } | null | undefined;
          errorRate?: number | undefined;
          latencyMs?: number | undefined;
          dropConnectionAfterCreate?: boolean | number | undefined;
          stepSeconds?: number | undefined;
          finalStatus?: Record<string, {
            status: "sent" | "delivered" | "read" | "failed" | "undelivered" | "canceled";
            code?: number | undefined;
          }> | undefined;
          stuckAt?: "accepted" | "queued" | "sending" | "sent" | "delivered" | null | undefined;
          callbacks?: "on" | "off" | "delay" | "duplicate" | "reorder" | "badSignature" | "blankField" | undefined;
          callbackDelaySeconds?: number | undefined;
          deleteResource?: string | readonly string[] | null | undefined;
          malformed?: "json" | "structure" | null | undefined;
          ratePerSecond?: number | null | undefined;
          outage?: {
            from: number;
            until: number;
          } | readonly {
            from: number;
            until: number;
          }[] | null | undefined;
          faultRates?: Partial<Record<"400" | "429" | "500" | "503" | "reset" | "silence" | "cut_after_create" | "malformed_json" | "malformed_structure", number>> | undefined;
          messageFaultRates?: Partial<Record<"failed" | "undelivered" | "canceled" | "stuck", number>> | undefined;
          callbackFaultRates?: Partial<Record<"off" | "delay" | "duplicate" | "reorder" | "badSignature" | "blankField", number>> | undefined;
        } | undefined;
        ses?: {
          latency_ms?: number | undefined;
          error_rate?: number | undefined;
          error?: "500" | "503" | "throttle" | "credentials" | "reset" | "timeout-after-accept" | "no-message-id" | "TooManyRequestsException" | "ThrottlingException" | "LimitExceededException" | "MessageRejected" | "BadRequestException" | "NotFoundException" | "AccountSuspendedException" | "SendingPausedException" | "MailFromDomainNotVerifiedException" | "ExpiredTokenException" | "UnrecognizedClientException" | "InvalidClientTokenId" | "SignatureDoesNotMatch" | "AccessDeniedException" | "InternalFailure" | "ServiceUnavailable" | undefined;
          fail_next?: number | undefined;
          max_per_second?: number | null | undefined;
          quota_24h?: number | null | undefined;
          notify_delay_s?: number | undefined;
          notify_before_response?: boolean | undefined;
          drop_notifications?: boolean | undefined;
          duplicate_notifications?: number | undefined;
          reorder?: boolean | undefined;
          bad_signature?: boolean | undefined;
          wrong_topic?: boolean | undefined;
          foreign_cert_url?: boolean | undefined;
          oversized_body?: boolean | undefined;
          unknown_type?: boolean | undefined;
          signature_version?: "1" | "2" | undefined;
          rules?: readonly {
            pattern: string;
            outcome: "success" | "bounce" | "ooto" | "complaint" | "suppressionlist" | "silent";
          }[] | undefined;
          outage?: {
            from: number;
            until: number;
          } | readonly {
            from: number;
            until: number;
          }[] | null | undefined;
          fault_rates?: Partial<Record<"500" | "503" | "throttle" | "credentials" | "reset" | "timeout-after-accept" | "no-message-id" | "TooManyRequestsException" | "ThrottlingException" | "LimitExceededException" | "MessageRejected" | "BadRequestException" | "NotFoundException" | "AccountSuspendedException" | "SendingPausedException" | "MailFromDomainNotVerifiedException" | "ExpiredTokenException" | "UnrecognizedClientException" | "InvalidClientTokenId" | "SignatureDoesNotMatch" | "AccessDeniedException" | "InternalFailure" | "ServiceUnavailable", number>> | undefined;
          mail_fault_rates?: Partial<Record<"bounce" | "ooto" | "complaint" | "silent", number>> | undefined;
          notice_fault_rates?: Partial<Record<"dropped" | "duplicated" | "reordered" | "bad_signature" | "wrong_topic" | "foreign_cert_url" | "oversized_body" | "unknown_type", number>> | undefined;
        } | undefined;
        recipients?: {
          previewBots?: number | undefined;
          deliver?: Record<string, "never" | {
            after: number;
          } | {
            fail: "permanent";
          } | {
            fail: "transient";
            times: number;
          }> | undefined;
          dropCallbacks?: boolean | undefined;
        } | undefined;
      };
      answer: {
        expo: {
          failNext: {
            status: number;
            count: number;
          } | null;
          errorRate: number;
          latencyMs: number;
          dropConnectionAfterAccept: boolean | number;
          ticketErrors: Record<string, "DeviceNotRegistered" | "MessageTooBig" | "MessageRateExceeded" | "MismatchSenderId" | "InvalidCredentials" | string>;
          receiptErrors: Record<string, "DeviceNotRegistered" | "MessageTooBig" | "MessageRateExceeded" | "MismatchSenderId" | "InvalidCredentials" | string>;
          receiptNever: string[];
          receiptDelaySeconds: number;
          malformed: "json" | "structure" | "count" | "errors" | "item" | null;
          projects: Record<string, string>;
          ratePerSecond: number | null;
          outage: {
            from: number;
            until: number;
          } | {
            from: number;
            until: number;
          }[] | null;
          faultRates: Partial<Record<"400" | "429" | "500" | "503" | "reset" | "silence" | "cut_after_accept" | "malformed_json" | "malformed_structure" | "malformed_count", number>>;
          messageFaultRates: Partial<Record<"ticket_error" | "receipt_error" | "receipt_never", number>>;
        };
        twilio: {
          failNext: {
            status: number;
            count: number;
            code?: number | null;
          } | null;
          errorRate: number;
          latencyMs: number;
          dropConnectionAfterCreate: boolean | number;
          stepSeconds: number;
          finalStatus: Record<string, {
            status: "sent" | "delivered" | "read" | "failed" | "undelivered" | "canceled";
            code?: number;
          }>;
          stuckAt: "accepted" | "queued" | "sending" | "sent" | "delivered" | null;
          callbacks: "on" | "off" | "delay" | "duplicate" | "reorder" | "badSignature" | "blankField";
          callbackDelaySeconds: number;
          deleteResource: string | string[] | null;
          malformed: "json" | "structure" | null;
          ratePerSecond: number | null;
          outage: {
            from: number;
            until: number;
          } | {
            from: number;
            until: number;
          }[] | null;
          faultRates: Partial<Record<"400" | "429" | "500" | "503" | "reset" | "silence" | "cut_after_create" | "malformed_json" | "malformed_structure", number>>;
          messageFaultRates: Partial<Record<"failed" | "undelivered" | "canceled" | "stuck", number>>;
          callbackFaultRates: Partial<Record<"off" | "delay" | "duplicate" | "reorder" | "badSignature" | "blankField", number>>;
        };
        ses: {
          latency_ms: number;
          error_rate: number;
          error: "500" | "503" | "throttle" | "credentials" | "reset" | "timeout-after-accept" | "no-message-id" | "TooManyRequestsException" | "ThrottlingException" | "LimitExceededException" | "MessageRejected" | "BadRequestException" | "NotFoundException" | "AccountSuspendedException" | "SendingPausedException" | "MailFromDomainNotVerifiedException" | "ExpiredTokenException" | "UnrecognizedClientException" | "InvalidClientTokenId" | "SignatureDoesNotMatch" | "AccessDeniedException" | "InternalFailure" | "ServiceUnavailable";
          fail_next: number;
          max_per_second: number | null;
          quota_24h: number | null;
          notify_delay_s: number;
          notify_before_response: boolean;
          drop_notifications: boolean;
          duplicate_notifications: number;
          reorder: boolean;
          bad_signature: boolean;
          wrong_topic: boolean;
          foreign_cert_url: boolean;
          oversized_body: boolean;
          unknown_type: boolean;
          signature_version: "1" | "2";
          rules: {
            pattern: string;
            outcome: "success" | "bounce" | "ooto" | "complaint" | "suppressionlist" | "silent";
          }[];
          outage: {
            from: number;
            until: number;
          } | {
            from: number;
            until: number;
          }[] | null;
          fault_rates: Partial<Record<"500" | "503" | "throttle" | "credentials" | "reset" | "timeout-after-accept" | "no-message-id" | "TooManyRequestsException" | "ThrottlingException" | "LimitExceededException" | "MessageRejected" | "BadRequestException" | "NotFoundException" | "AccountSuspendedException" | "SendingPausedException" | "MailFromDomainNotVerifiedException" | "ExpiredTokenException" | "UnrecognizedClientException" | "InvalidClientTokenId" | "SignatureDoesNotMatch" | "AccessDeniedException" | "InternalFailure" | "ServiceUnavailable", number>>;
          mail_fault_rates: Partial<Record<"bounce" | "ooto" | "complaint" | "silent", number>>;
          notice_fault_rates: Partial<Record<"dropped" | "duplicated" | "reordered" | "bad_signature" | "wrong_topic" | "foreign_cert_url" | "oversized_body" | "unknown_type", number>>;
        };
        recipients: {
          previewBots: number;
          deliver: Record<string, "never" | {
            after: number;
          } | {
            fail: "permanent";
          } | {
            fail: "transient";
            times: number;
          }>;
          dropCallbacks: boolean;
        };
      };
    };
    /** Change a webhook endpoint, or switch it on or off. While it is off it hears of nothing, and nothing is kept for it. */
    "/api/1/admin/webhooks/{uid}": {
      path: {
        uid: string;
      };
      body: {
        /** Begins with https://; without TLS only to the machine itself */
        url?: string | undefined;
        types?: readonly ("touch.delivered" | "touch.failed" | "link.clicked" | "contact.unsubscribed")[] | undefined;
        description?: string | undefined;
        enabled?: boolean | undefined;
      };
      answer: {
        uid: string;
        url: string;
        description: string;
        types: ("touch.delivered" | "touch.failed" | "link.clicked" | "contact.unsubscribed")[];
        enabled: boolean;
        /** `gone`: it answered 410; `failing`: it only failed for days */
        disabled_reason: "admin" | "gone" | "failing" | null;
        disabled_at: number | null;
        failing_since: number | null;
        /** Until when the secret before the present one signs too */
        previous_secret_until: number | null;
        created_at: number;
      };
    };
    /** Change a touch point. With `precondition.messages_etag` only if nobody changed the messages since you read them. A new strategy begins anew with everybody. */
    "/api/1/admin/touch_points/{uid}": {
      path: {
        uid: string;
      };
      body: {
        event_slug?: string | undefined;
        event_schema?: Record<string, unknown> | undefined;
        selection_strategy?: "random_with_replacement" | "fixed" | "ordered_resettable" | undefined;
        messages?: {
          sms?: readonly {
            priority: number;
            uid: string;
            body_format: string;
            body_parameters?: readonly string[] | undefined;
          }[] | undefined;
          push?: readonly {
            priority: number;
            uid: string;
            title_format: string;
            title_parameters?: readonly string[] | undefined;
            body_format: string;
            body_parameters?: readonly string[] | undefined;
            channel_id: string;
          }[] | undefined;
          email?: readonly {
            priority: number;
            uid: string;
            subject_format: string;
            subject_parameters?: readonly string[] | undefined;
            template: string;
            template_parameters_fixed?: Record<string, unknown> | undefined;
            template_parameters_substituted?: readonly {
              key: readonly (string | number)[];
              format: string;
              parameters?: readonly string[] | undefined;
            }[] | undefined;
          }[] | undefined;
        } | undefined;
        precondition?: {
          messages_etag: string;
        } | undefined;
      };
      answer: {
        uid: string;
        event_slug: string;
        event_schema: Record<string, unknown>;
        selection_strategy: "random_with_replacement" | "fixed" | "ordered_resettable";
        messages: {
          sms: {
            priority: number;
            uid: string;
            body_format: string;
            body_parameters: string[];
          }[];
          push: {
            priority: number;
            uid: string;
            title_format: string;
            title_parameters: string[];
            body_format: string;
            body_parameters: string[];
            channel_id: string;
          }[];
          email: {
            priority: number;
            uid: string;
            subject_format: string;
            subject_parameters: string[];
            template: string;
            template_parameters_fixed: Record<string, unknown>;
            template_parameters_substituted: {
              key: (string | number)[];
              format: string;
              parameters: string[];
            }[];
          }[];
        };
        /** Give it back when you change the messages */
        messages_etag: string;
        /** Parameters made of the examples of the schema */
        example: Record<string, unknown>;
        created_at: number;
      };
    };
  };
  delete: {
    /** Delete a user and everything that belongs to them. */
    "/api/1/admin/users/{sub}": {
      path: {
        /** The user's sub */
        sub: string;
      };
      answer: unknown;
    };
    /** Sign this browser out. */
    "/api/1/admin/session": {
      answer: unknown;
    };
    /** Sign a browser out, at once and everywhere. */
    "/api/1/admin/sessions/{uid}": {
      path: {
        uid: string;
      };
      answer: unknown;
    };
    /** Revoke an admin token. It stops working at once on the server that answers, and within ten seconds on all others. */
    "/api/1/admin/tokens/{uid}": {
      path: {
        uid: string;
      };
      answer: unknown;
    };
    /** Forget a failed job for good. */
    "/api/1/admin/jobs/failed/{id}": {
      path: {
        id: string;
      };
      answer: unknown;
    };
    /** Forget a quarantined entry for good. */
    "/api/1/admin/quarantine/{queue}/{id}": {
      path: {
        queue: string;
        id: string;
      };
      answer: unknown;
    };
    /** Free a lock, whoever holds it. The holder notices at its next renewal or fenced step and leaves the rest to the next one. */
    "/api/1/admin/locks/{key}": {
      path: {
        key: string;
      };
      answer: unknown;
    };
    /** Abort an upload. */
    "/api/1/file_uploads/{uid}": {
      path: {
        uid: string;
      };
      query?: {
        /** The upload's token; the Authorization header wins */
        jwt?: string | undefined;
      };
      answer: unknown;
    };
    /** Empty the inbox. */
    "/api/1/sandbox/messages": {
      answer: unknown;
    };
    /** Take one message out of the inbox. */
    "/api/1/sandbox/messages/{id}": {
      path: {
        id: string;
      };
      answer: unknown;
    };
    /** Empty the inbox. */
    "/sandbox/api/inbox": {
      answer: unknown;
    };
    /** Take one message out of the inbox. */
    "/sandbox/api/inbox/{id}": {
      path: {
        id: string;
      };
      answer: unknown;
    };
    /** Let everything work again. */
    "/api/1/sandbox/knobs": {
      answer: {
        expo: {
          failNext: {
            status: number;
            count: number;
          } | null;
          errorRate: number;
          latencyMs: number;
          dropConnectionAfterAccept: boolean | number;
          ticketErrors: Record<string, "DeviceNotRegistered" | "MessageTooBig" | "MessageRateExceeded" | "MismatchSenderId" | "InvalidCredentials" | string>;
          receiptErrors: Record<string, "DeviceNotRegistered" | "MessageTooBig" | "MessageRateExceeded" | "MismatchSenderId" | "InvalidCredentials" | string>;
          receiptNever: string[];
          receiptDelaySeconds: number;
          malformed: "json" | "structure" | "count" | "errors" | "item" | null;
          projects: Record<string, string>;
          ratePerSecond: number | null;
          outage: {
            from: number;
            until: number;
          } | {
            from: number;
            until: number;
          }[] | null;
          faultRates: Partial<Record<"400" | "429" | "500" | "503" | "reset" | "silence" | "cut_after_accept" | "malformed_json" | "malformed_structure" | "malformed_count", number>>;
          messageFaultRates: Partial<Record<"ticket_error" | "receipt_error" | "receipt_never", number>>;
        };
        twilio: {
          failNext: {
            status: number;
            count: number;
            code?: number | null;
          } | null;
          errorRate: number;
          latencyMs: number;
          dropConnectionAfterCreate: boolean | number;
          stepSeconds: number;
          finalStatus: Record<string, {
            status: "sent" | "delivered" | "read" | "failed" | "undelivered" | "canceled";
            code?: number;
          }>;
          stuckAt: "accepted" | "queued" | "sending" | "sent" | "delivered" | null;
          callbacks: "on" | "off" | "delay" | "duplicate" | "reorder" | "badSignature" | "blankField";
          callbackDelaySeconds: number;
          deleteResource: string | string[] | null;
          malformed: "json" | "structure" | null;
          ratePerSecond: number | null;
          outage: {
            from: number;
            until: number;
          } | {
            from: number;
            until: number;
          }[] | null;
          faultRates: Partial<Record<"400" | "429" | "500" | "503" | "reset" | "silence" | "cut_after_create" | "malformed_json" | "malformed_structure", number>>;
          messageFaultRates: Partial<Record<"failed" | "undelivered" | "canceled" | "stuck", number>>;
          callbackFaultRates: Partial<Record<"off" | "delay" | "duplicate" | "reorder" | "badSignature" | "blankField", number>>;
        };
        ses: {
          latency_ms: number;
          error_rate: number;
          error: "500" | "503" | "throttle" | "credentials" | "reset" | "timeout-after-accept" | "no-message-id" | "TooManyRequestsException" | "ThrottlingException" | "LimitExceededException" | "MessageRejected" | "BadRequestException" | "NotFoundException" | "AccountSuspendedException" | "SendingPausedException" | "MailFromDomainNotVerifiedException" | "ExpiredTokenException" | "UnrecognizedClientException" | "InvalidClientTokenId" | "SignatureDoesNotMatch" | "AccessDeniedException" | "InternalFailure" | "ServiceUnavailable";
          fail_next: number;
          max_per_second: number | null;
          quota_24h: number | null;
          notify_delay_s: number;
          notify_before_response: boolean;
          drop_notifications: boolean;
          duplicate_notifications: number;
          reorder: boolean;
          bad_signature: boolean;
          wrong_topic: boolean;
          foreign_cert_url: boolean;
          oversized_body: boolean;
          unknown_type: boolean;
          signature_version: "1" | "2";
          rules: {
            pattern: string;
            outcome: "success" | "bounce" | "ooto" | "complaint" | "suppressionlist" | "silent";
          }[];
          outage: {
            from: number;
            until: number;
          } | {
            from: number;
            until: number;
          }[] | null;
          fault_rates: Partial<Record<"500" | "503" | "throttle" | "credentials" | "reset" | "timeout-after-accept" | "no-message-id" | "TooManyRequestsException" | "ThrottlingException" | "LimitExceededException" | "MessageRejected" | "BadRequestException" | "NotFoundException" | "AccountSuspendedException" | "SendingPausedException" | "MailFromDomainNotVerifiedException" | "ExpiredTokenException" | "UnrecognizedClientException" | "InvalidClientTokenId" | "SignatureDoesNotMatch" | "AccessDeniedException" | "InternalFailure" | "ServiceUnavailable", number>>;
          mail_fault_rates: Partial<Record<"bounce" | "ooto" | "complaint" | "silent", number>>;
          notice_fault_rates: Partial<Record<"dropped" | "duplicated" | "reordered" | "bad_signature" | "wrong_topic" | "foreign_cert_url" | "oversized_body" | "unknown_type", number>>;
        };
        recipients: {
          previewBots: number;
          deliver: Record<string, "never" | {
            after: number;
          } | {
            fail: "permanent";
          } | {
            fail: "transient";
            times: number;
          }>;
          dropCallbacks: boolean;
        };
      };
    };
    /** Remove a webhook endpoint with its messages. */
    "/api/1/admin/webhooks/{uid}": {
      path: {
        uid: string;
      };
      answer: unknown;
    };
    /** Remove a contact method. */
    "/api/1/users/me/contact_methods/{uid}": {
      path: {
        uid: string;
      };
      answer: unknown;
    };
    /** Remove a contact method, on its owner's behalf. */
    "/api/1/admin/users/{sub}/contact_methods/{uid}": {
      path: {
        sub: string;
        uid: string;
      };
      answer: unknown;
    };
    /** Lift the suppression of an email address. Also takes it off the list that the provider keeps for the account, if it keeps one. */
    "/api/1/admin/suppressed_emails/{uid}": {
      path: {
        uid: string;
      };
      answer: unknown;
    };
    /** Lift the suppression of an email address. Also takes it off the list that the provider keeps for the account, if it keeps one. */
    "/api/1/admin/email/suppressions/{uid}": {
      path: {
        uid: string;
      };
      answer: unknown;
    };
    /** Lift the suppression of a phone number. */
    "/api/1/admin/suppressed_phone_numbers/{uid}": {
      path: {
        uid: string;
      };
      answer: unknown;
    };
    /** Lift the suppression of a phone number. */
    "/api/1/admin/sms/suppressed_phone_numbers/{uid}": {
      path: {
        uid: string;
      };
      answer: unknown;
    };
    /** Stop a campaign; who has a touch of it already keeps it. */
    "/api/1/admin/campaigns/{uid}": {
      path: {
        uid: string;
      };
      answer: unknown;
    };
    /** Remove a touch point. Touches of it that still wait fail; those that arrived stay in the history. */
    "/api/1/admin/touch_points/{uid}": {
      path: {
        uid: string;
      };
      answer: unknown;
    };
    /** End one of your daily reminders. */
    "/api/1/users/me/daily_reminders": {
      body: {
        uid: string;
      };
      answer: unknown;
    };
  };
}

export type Failure = {
  /** The code that programs decide on */
  type: string;
  message: string;
  /** What to do next */
  hint?: string;
  detail?: unknown;
  request_id: string;
};
