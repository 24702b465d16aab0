import "@mantine/notifications/styles.layer.css";
import { Notifications, notifications } from "@mantine/notifications";

export const { show } = notifications;

/**
 * Where notices appear: above, where nothing is pressed that one has just done. Apart from everything else, because most
 * visits never see one.
 */
export default function Notices() {
  return <Notifications position="top-center" />;
}
