import { describe, expect, it } from '@jest/globals';
import { InvalidArgumentError } from '../../errors.js';
import { batchRequest, type BatchRequest } from './erasure-records.js';

describe('what a request for erasures says beside the uids', () => {
  it.each([[undefined], [null], ['all'], [{}]])('is refused as %j, with what is missing', (given) => {
    const attempt = () => batchRequest(given as unknown as BatchRequest);
    expect(attempt).toThrow(InvalidArgumentError);
    expect(attempt).toThrow("mode must be 'anonymize' or 'delete'");
  });

  it.each(Array.from('\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069'))(
    'is refused with a reference that turns text around (%j)',
    (control) => {
      const attempt = () => batchRequest({ mode: 'delete', reference: `GDPR-${control}1` });
      expect(attempt).toThrow(InvalidArgumentError);
      expect(attempt).toThrow(
        'reference must be a text of 1 to 128 characters, without control characters, controls',
      );
    },
  );

  it('may have a reference in any script', () => {
    expect(batchRequest({ mode: 'delete', reference: 'בקשה 7' }).reference).toBe('בקשה 7');
  });
});
