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
  postalAddress: checked(
    kinds.optionalText("email.postalAddress", {
      doc: "postal address below mails to a list, which laws of many countries require; previews warn while it is unset",
    }),
    oneLine.optional(),
  ),
};
