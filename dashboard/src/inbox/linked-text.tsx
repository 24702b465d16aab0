import type { ReactNode } from "react";

const LINK = /https?:\/\/[^\s<>"']+[^\s<>"'.,;:!?)\]]/g;

/** A text with its addresses as links; everything else in it is text, whatever it looks like. */
export function LinkedText({ text }: { readonly text: string }) {
  const parts: ReactNode[] = [];
  let from = 0;
  for (const { 0: address, index } of text.matchAll(LINK)) {
    parts.push(
      text.slice(from, index),
      <a key={index} href={address} target="_blank" rel="noreferrer">
        {address}
      </a>,
    );
    from = index + address.length;
  }
  parts.push(text.slice(from));
  return parts;
}
