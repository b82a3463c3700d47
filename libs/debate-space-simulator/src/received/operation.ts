/** What a request asks for: an endpoint of sections 4.1 to 4.5, or none of them. */
export type Operation = 'token' | 'anonymize' | 'delete' | 'list' | 'logout' | 'unknown';
