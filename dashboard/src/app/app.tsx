import { RouterProvider } from "@tanstack/react-router";
import { router } from "./router.tsx";
import { Surroundings } from "./surroundings.tsx";

export function App() {
  return (
    <Surroundings>
      <RouterProvider router={router} />
    </Surroundings>
  );
}
