export {
  addressText,
  CHANNEL_LABELS,
  CHANNEL_NAMES,
  ChannelMark,
  type ChannelName,
  ChannelSign,
} from "./channel-mark.tsx";
export { ChartCard } from "./chart-card.tsx";
export { ConfirmButton } from "./confirm-button.tsx";
export { type Column, DataTable } from "./data-table.tsx";
export {
  Ago,
  counted,
  countedField,
  Duration,
  durationText,
  momentText,
  Num,
  numberText,
  sentence,
  Time,
} from "./figures.tsx";
export { JobProgress } from "./job-progress.tsx";
export { JobRuns } from "./job-runs.tsx";
export { JsonView, objectOf } from "./json-view.tsx";
export { useKeyPages } from "./key-pages.tsx";
export { LiveIndicator } from "./live-indicator.tsx";
export { PageHeader, Panel } from "./page-header.tsx";
export { nameOf, PersonLink } from "./person-link.tsx";
export { PopoverForm } from "./popover-form.tsx";
export { StatTile } from "./stat-tile.tsx";
export { StateBadge, toneOf } from "./state-badge.tsx";
export { EmptyState, ErrorState, LoadingState } from "./states.tsx";
