export { SingleFlight, type SingleFlightContext, type SingleFlightPlan, singleFlightErrors } from "./flight.ts";
