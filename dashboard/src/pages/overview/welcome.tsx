import { CloseButton, Code, Text } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { Link } from "@tanstack/react-router";
import { Panel } from "../../parts/index.ts";
import styles from "./welcome.module.css";

/** For whoever is here for the first time: what this is, and four things to do. It goes away for good with one press. */
export function Welcome() {
  const [isRead, setIsRead] = useLocalStorage({
    key: "carillon-welcome-read",
    defaultValue: false,
    getInitialValueInEffect: false,
  });
  if (isRead) return null;
  return (
    <Panel
      title="Welcome to Carillon"
      description="An app says whom to tell about what. Carillon picks the channel, the words and the hour, sends, tries again, and follows each message to the click. Simulated providers stand in here: nobody real is reached."
      actions={<CloseButton aria-label="Close the welcome" onClick={() => setIsRead(true)} />}
    >
      <ol className={styles.steps}>
        <li>
          <a href="/sandbox">Watch messages arrive</a>
          <Text size="sm" c="dimmed">
            on the phone and in the mailbox of the people here
          </Text>
        </li>
        <li>
          <Link to="/touch-points">Send one yourself</Link>
          <Text size="sm" c="dimmed">
            open a touch point, change its words, send it to somebody
          </Text>
        </li>
        <li>
          <Link to="/touches">Follow one on its way</Link>
          <Text size="sm" c="dimmed">
            every step from the queue to the click
          </Text>
        </li>
        <li>
          <a href="/sandbox#faults">Let a provider fail</a>
          <Text size="sm" c="dimmed">
            and see retries, giving up, and the alert
          </Text>
        </li>
      </ol>
      <Text size="sm" c="dimmed" mt="sm">
        Charts fill day by day. For a month of the demo at once, stop Carillon and run{" "}
        <Code>npx carillon demo --days 30</Code>.
      </Text>
    </Panel>
  );
}
