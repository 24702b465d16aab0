export { type Answer, CarillonApiError } from "carillon/client";
export { carillon, type Standing } from "./carillon.ts";
export { type Days, daysCounted, type Numbers } from "./days.ts";
export { CHANNELS, type ChannelToday, FAMILIES, outcomesOf, todayOf } from "./outcomes.ts";
export {
  CALM,
  type ChangeOptions,
  LIVE,
  type Read,
  type ReadOptions,
  useChange,
  useRead,
  useRefresh,
} from "./reads.ts";
export { signIn, signOut, useSession, useStatisticsTimezone } from "./session.ts";
export { countOf, dateIn, rowsOf, type Span, useCharts, useDays, useToday } from "./statistics.ts";
