import type { DebateSpaceErasures } from 'nestjs-debate-space';

/** What is used here of the client that `prisma generate` makes. */
interface Transaction {
  readonly account: { delete(options: { where: { uid: string } }): Promise<unknown> };
  $queryRawUnsafe(text: string, ...values: unknown[]): Promise<unknown>;
}
interface Prisma {
  $transaction(work: (tx: Transaction) => Promise<void>): Promise<void>;
}

export async function deleteAccount(
  uid: string,
  prisma: Prisma,
  erasures: DebateSpaceErasures,
): Promise<void> {
  await prisma.$transaction(async (tx) => {
    await tx.account.delete({ where: { uid } });
    const query = (text: string, values: string[]) => tx.$queryRawUnsafe(text, ...values);
    await erasures.request({ uid, mode: 'delete', transaction: { query } });
  });
}
