import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/**
 * Decides between light and dark before anything is drawn, so that nobody sees a flash of the other. It is a file like any
 * other script, because the pages allow no script inside their HTML.
 */
function colorSchemeScript(): Plugin {
  const source = `(function(){var kept;try{kept=localStorage.getItem("carillon-color-scheme")}catch(e){}
var scheme=kept==="light"||kept==="dark"?kept:matchMedia("(prefers-color-scheme: dark)").matches?"dark":"light";
document.documentElement.setAttribute("data-mantine-color-scheme",scheme)})();`;
  const name = "color-scheme.js";
  return {
    name: "color-scheme-script",
    apply: "build",
    buildStart() {
      this.emitFile({ type: "asset", name, source });
    },
    transformIndexHtml: {
      order: "post",
      handler(_html, { bundle }) {
        const file = Object.values(bundle ?? {}).find((each) => each.type === "asset" && each.names.includes(name));
        if (!file) throw new Error(`${name} is missing in the build`);
        return [{ tag: "script", attrs: { src: `/admin/${file.fileName}` }, injectTo: "head-prepend" }];
      },
    },
  };
}

export default defineConfig({
  base: "/admin/",
  plugins: [react(), colorSchemeScript()],
  resolve: { alias: { "carillon/client": new URL("../src/client/index.ts", import.meta.url).pathname } },
  build: {
    target: "es2022",
    rollupOptions: { input: ["admin.html", "sandbox.html"] },
    // The policy of the pages allows no data: scripts, and small files are cheap over one connection.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
