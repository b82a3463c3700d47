import { DebateSpaceEvents, type DebateSpaceEvent } from 'nestjs-debate-space';
import { filter, firstValueFrom } from 'rxjs';

interface App {
  get(token: typeof DebateSpaceEvents): DebateSpaceEvents;
}

/** The events of an app from now on, in a list that grows. */
export function eventsOf(app: App): DebateSpaceEvent[] {
  const events: DebateSpaceEvent[] = [];
  app.get(DebateSpaceEvents).events$.subscribe((event) => events.push(event));
  return events;
}

type EventOf<Type> = Extract<DebateSpaceEvent, { type: Type }>;

/** The next event of a type. */
export function firstEvent<Type extends DebateSpaceEvent['type']>(
  app: App,
  type: Type,
): Promise<EventOf<Type>> {
  const ofType = (event: DebateSpaceEvent): event is EventOf<Type> => event.type === type;
  return firstValueFrom(app.get(DebateSpaceEvents).events$.pipe(filter(ofType)));
}
