/** `csv`: RFC 4180 with a header row; `ndjson`: on each line a JSON string or object; `lines`: on each line a uid. */
export const UID_FORMATS = ['csv', 'ndjson', 'lines'] as const;
export type UidFormat = (typeof UID_FORMATS)[number];
