declare module 'connect-sqlite3' {
  const stores: (connect: { readonly Store: unknown }) => new (options: { readonly db: object }) => object;
  export default stores;
}
