import { Logger, ServiceUnavailableException } from '@nestjs/common';
import { StorageError } from 'nestjs-debate-space';

/**
 * When the storage does not answer, the erasure may have been stored all the same: whoever asked gets the reference, to look
 * what became of it.
 * @param howToLook a sentence that says where, and that asking again erases nobody twice
 */
export async function orUnknown<T>(asked: Promise<T>, reference: string, howToLook: string): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    new Logger('Erasures').warn(`${error.code} ${error.message} (reference ${reference})`);
    throw new ServiceUnavailableException(
      `The storage of this app does not answer. It is unknown whether your request was stored. Its reference is ${reference}. ${howToLook}`,
    );
  }
}
