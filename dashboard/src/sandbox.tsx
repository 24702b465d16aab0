import "@mantine/core/styles.layer.css";
import "./app/base.css";
import { createRoot } from "react-dom/client";
import { Surroundings } from "./app/surroundings.tsx";
import { Inbox } from "./inbox/inbox.tsx";

createRoot(document.getElementById("root")!).render(
  <Surroundings>
    <Inbox />
  </Surroundings>,
);
