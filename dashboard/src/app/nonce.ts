/** What styles that are written at run time must carry, or the browser ignores them. */
export const styleNonce = document.querySelector<HTMLMetaElement>('meta[name="style-nonce"]')?.content ?? "";

// The package that locks scrolling behind drawers and dialogs asks for it under this name.
Object.assign(globalThis, { __webpack_nonce__: styleNonce });
