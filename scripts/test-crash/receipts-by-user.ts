import type { DebateSpaceErasures, ErasureReceipt } from 'nestjs-debate-space';

/** What is proven of each user. */
export async function receiptsByUser(
  erasures: DebateSpaceErasures,
  uids: readonly string[],
): Promise<Record<string, ErasureReceipt[]>> {
  const byUser: Record<string, ErasureReceipt[]> = {};
  for (const uid of uids) {
    const own: ErasureReceipt[] = (byUser[uid] = []);
    for await (const receipt of erasures.receiptsOf(uid)) own.push(receipt);
  }
  return byUser;
}
