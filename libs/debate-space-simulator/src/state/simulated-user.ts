/** What the service is told when a user registers. */
export interface NewUser {
  /** Unique identifier defined by the client application (section 2). */
  uid: string;
  first_name?: string;
  last_name?: string;
  email?: string;
  image_url?: string;
  /** How many contributions the user has made. Default 0. */
  contributions?: number;
}

/** A registered user. The personal fields, `uid` among them, are null once anonymized (section 4.2). */
export interface SimulatedUser {
  /** The service's own number; it outlives anonymization. */
  readonly id: number;
  readonly uid: string | null;
  readonly first_name: string | null;
  readonly last_name: string | null;
  readonly email: string | null;
  readonly image_url: string | null;
  readonly contributions: number;
  /** ISO 8601, by the service's clock. */
  readonly created_at: string;
}

/** First name and surname in one, or null when neither is known. */
export function fullName(user: SimulatedUser): string | null {
  const parts = [user.first_name, user.last_name].filter((part) => part !== null && part !== '');
  return parts.length > 0 ? parts.join(' ') : null;
}
