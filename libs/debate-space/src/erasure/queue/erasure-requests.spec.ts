import { describe, expect, it } from '@jest/globals';
import { InvalidArgumentError } from '../../errors.js';
import { batchRequest, type BatchRequest } from './erasure-requests.js';

describe('what a request for erasures says beside the uids', () => {
  it.each([[undefined], [null], ['all'], [{}]])('is refused as %j, with what is missing', (given) => {
    const attempt = () => batchRequest(given as unknown as BatchRequest);
    expect(attempt).toThrow(InvalidArgumentError);
    expect(attempt).toThrow("mode must be 'anonymize' or 'delete'");
  });
});
