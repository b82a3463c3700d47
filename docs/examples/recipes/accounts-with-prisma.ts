/** What is used here of the client that `prisma generate` makes. */
interface Prisma {
  readonly account: {
    findMany(query: {
      select: { uid: true };
      where: { uid: { in: string[] } };
    }): Promise<readonly { readonly uid: string }[]>;
  };
}

export async function existingAccounts(prisma: Prisma, uids: readonly string[]): Promise<string[]> {
  const found = await prisma.account.findMany({ select: { uid: true }, where: { uid: { in: [...uids] } } });
  return found.map(({ uid }) => uid);
}
