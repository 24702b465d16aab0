import { z } from "zod";
import { settings as kinds, type Setting } from "../../kernel/config.ts";

const colour = z.string().regex(/^#[0-9a-f]{6}$/i, "is not a colour like #2b4c7e");
const oneLine = z
  .string()
  .max(200)
  .regex(/^[^\p{Cc}\u2028\u2029]*$/u, "has control characters or line breaks");

/** A text setting that is checked further than being text. */
const checked = <T>(setting: Setting<T>, schema: z.ZodType<T>): Setting<T> => ({ ...setting, schema });

export const settings = {
  brandName: checked(
    kinds.text("email.brandName", { default: "Carillon", doc: "the name on top of every mail and in its footer" }),
    oneLine.min(1),
  ),
  brandAccent: checked(
    kinds.text("email.brandAccent", {
      default: "#2b4c7e",
      doc: "colour of buttons and of the mark beside the name in every mail, as #rrggbb; text on it is white or dark, as reads better",
    }),
    colour,
  ),
  brandLogo: checked(
    kinds.optionalText("email.brandLogo", {
      doc: "picture on top of every mail instead of the mark and the name: a PNG, JPEG or GIF of twice the size at which it is shown (at most 40 pixels high), as the path of a file or an https address that this installation fetches",
    }),
    z.string().max(1000).optional(),
  ),
  brandLogoInline: kinds.flag("email.brandLogoInline", {
    default: false,
    doc: "whether the logo travels inside every mail, so that mailboxes which load no pictures show it too; mails become larger and slower to write",
  }),
  postalAddress: checked(
    kinds.optionalText("email.postalAddress", {
      doc: "postal address below mails to a list, which laws of many countries require; previews warn while it is unset",
    }),
    oneLine.optional(),
  ),
};
