import "@mantine/core/styles.layer.css";
import "./app/base.css";
import { createRoot } from "react-dom/client";
import { App } from "./app/app.tsx";

createRoot(document.getElementById("root")!).render(<App />);
