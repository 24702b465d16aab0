/** The bell, as on the first page of the server. */
export function Bell({ size = 28 }: { readonly size?: number }) {
  return <img src="/favicon.svg" width={size} height={size} alt="" />;
}
