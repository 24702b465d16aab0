import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { Frame } from "./frame.tsx";
import { Lost } from "./lost.tsx";
import { SignIn } from "./sign-in.tsx";

const root = createRootRoute({ notFoundComponent: Lost });
const signIn = createRoute({ getParentRoute: () => root, path: "/sign-in", component: SignIn });
/** Everything that needs somebody who is signed in. */
const frame = createRoute({ getParentRoute: () => root, id: "frame", component: Frame });

/** A page of its own script, loaded when somebody goes there or is about to. */
function page<const P extends string>(path: P, load: () => Promise<{ readonly Page: () => React.ReactNode }>) {
  return createRoute({ getParentRoute: () => frame, path, component: lazyRouteComponent(load, "Page") });
}

const pages = [
  page("/", () => import("../pages/overview/page.tsx")),
  page("/jobs", () => import("../pages/jobs/page.tsx")),
  page("/alerts", () => import("../pages/alerts/page.tsx")),
  page("/push", () => import("../pages/push/page.tsx")),
  page("/sms", () => import("../pages/sms/page.tsx")),
  page("/email", () => import("../pages/email/page.tsx")),
  page("/templates", () => import("../pages/templates/page.tsx")),
  page("/touch-points", () => import("../pages/touch-points/page.tsx")),
  page("/touch-points/$uid", () => import("../pages/touch-points/editor-page.tsx")),
  page("/touches", () => import("../pages/touches/page.tsx")),
  page("/touches/$uid", () => import("../pages/touches/timeline-page.tsx")),
  page("/campaigns", () => import("../pages/campaigns/page.tsx")),
  page("/links", () => import("../pages/links/page.tsx")),
  page("/reminders", () => import("../pages/reminders/page.tsx")),
  page("/people", () => import("../pages/people/page.tsx")),
  page("/people/$sub", () => import("../pages/people/person-page.tsx")),
  page("/data-health", () => import("../pages/data-health/page.tsx")),
  page("/data-health/$family", () => import("../pages/data-health/family-page.tsx")),
  page("/keyspace", () => import("../pages/keyspace/page.tsx")),
  page("/settings", () => import("../pages/settings/page.tsx")),
];

export const router = createRouter({
  routeTree: root.addChildren([signIn, frame.addChildren(pages)]),
  basepath: "/admin",
  defaultPreload: "intent",
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
