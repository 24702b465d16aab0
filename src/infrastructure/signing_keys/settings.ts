import { settings as kinds } from "../../kernel/config.ts";

export const settings = {
  appleBaseUrl: kinds.text("apple.baseUrl", {
    default: "https://appleid.apple.com",
    doc: "where Apple's sign-in keys are fetched; the path /auth/keys is added",
  }),
  cognitoRegion: kinds.text("cognito.region", {
    default: "us-west-2",
    doc: "the region of the Amazon Cognito user pool",
  }),
  cognitoPool: kinds.optionalText("cognito.pool", {
    doc: "the id of the Amazon Cognito user pool whose tokens are accepted; unset = none are",
  }),
  cognitoClient: kinds.optionalText("cognito.client", {
    doc: "the client id that Cognito tokens must be made for",
  }),
  cognitoBaseUrl: kinds.optionalText("cognito.baseUrl", {
    doc: "where the Cognito pool answers; by default the address of its region",
  }),
};
