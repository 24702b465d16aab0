import { type CSSVariablesResolver, createTheme, type MantineColorsTuple } from "@mantine/core";

/** The bronze and blue of the bell; everything that has a colour takes it from here. */
const bell: MantineColorsTuple = [
  "#eef3fb",
  "#dbe5f4",
  "#b4c8e6",
  "#8aa9d8",
  "#678fcc",
  "#4f7ec4",
  "#3f72bd",
  "#3260a6",
  "#2b4c7e",
  "#1d3a66",
];

/** Greys of the night with the blue of the surfaces in them. */
const dark: MantineColorsTuple = [
  "#c9d3de",
  "#b3c0ce",
  "#8797a8",
  "#66778a",
  "#3a4857",
  "#313e4c",
  "#232e3a",
  "#17202a",
  "#131b24",
  "#0f151c",
];

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';

export const theme = createTheme({
  primaryColor: "bell",
  primaryShade: { light: 7, dark: 6 },
  colors: { bell, dark },
  fontFamily: FONT,
  fontFamilyMonospace: 'ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace',
  headings: { fontFamily: FONT, fontWeight: "650" },
  defaultRadius: "md",
  cursorType: "pointer",
  respectReducedMotion: true,
  components: {
    Tooltip: { defaultProps: { withArrow: true, openDelay: 200, events: { hover: true, focus: true, touch: true } } },
    Button: { defaultProps: { size: "sm" } },
    Modal: { defaultProps: { centered: true, closeButtonProps: { "aria-label": "Close" } } },
    Drawer: { defaultProps: { closeButtonProps: { "aria-label": "Close" } } },
    Notification: { defaultProps: { closeButtonProps: { "aria-label": "Dismiss" } } },
  },
});

/** What has its own value in light and dark. Tones are checked for contrast on the surface (AA, small text). */
export const variables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-body": "#f5f7fa",
    "--mantine-color-dimmed": "#566373",
    "--mantine-color-placeholder": "#6a7686",
    "--surface": "#ffffff",
    "--surface-sunken": "#f0f3f7",
    "--hairline": "#dfe5ec",
    "--ink": "#18222e",
    "--tone-good": "#12693d",
    "--tone-good-soft": "#e3f5eb",
    "--tone-bad": "#a9211a",
    "--tone-bad-soft": "#fdebe9",
    "--tone-warn": "#7a4c00",
    "--tone-warn-soft": "#fdf2d8",
    "--tone-info": "#28538f",
    "--tone-info-soft": "#e6effb",
    "--tone-neutral": "#4a5665",
    "--tone-neutral-soft": "#eaeef3",
    "--series-push": "#4f6fd8",
    "--series-sms": "#12908e",
    "--series-email": "#d9901a",
    "--series-good": "#2a9d63",
    "--series-bad": "#d1493f",
    "--series-other": "#8c99a8",
    "--series-click": "#8a5cc7",
  },
  dark: {
    "--mantine-color-body": "#0f151c",
    "--mantine-color-dimmed": "#9caab9",
    "--mantine-color-placeholder": "#93a2b2",
    "--surface": "#17202a",
    "--surface-sunken": "#111921",
    "--hairline": "#293543",
    "--ink": "#e6ecf3",
    "--tone-good": "#6fd6a1",
    "--tone-good-soft": "#123425",
    "--tone-bad": "#ff9a91",
    "--tone-bad-soft": "#431d1b",
    "--tone-warn": "#f2c566",
    "--tone-warn-soft": "#3a2d10",
    "--tone-info": "#9dc1f7",
    "--tone-info-soft": "#1a2f4d",
    "--tone-neutral": "#b3c0ce",
    "--tone-neutral-soft": "#263240",
    "--series-push": "#8199f0",
    "--series-sms": "#3fbdb8",
    "--series-email": "#f0b24a",
    "--series-good": "#4fc48a",
    "--series-bad": "#f0776c",
    "--series-other": "#7b8a9a",
    "--series-click": "#b48be6",
  },
});

export type Tone = "good" | "bad" | "warn" | "info" | "neutral";

/** Colours of series in charts, by what they stand for, the same on every page. */
export const SERIES = {
  push: "var(--series-push)",
  sms: "var(--series-sms)",
  email: "var(--series-email)",
  good: "var(--series-good)",
  bad: "var(--series-bad)",
  other: "var(--series-other)",
  click: "var(--series-click)",
} as const;
