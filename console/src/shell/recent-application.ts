// The application that was used last in this tab. Pages without an application show its navigation.
import { tabStore } from '../api/storage.ts';

const STORED = 'berth.application';

export const recentApplication = (): string | undefined => tabStore.getItem(STORED) ?? undefined;

export const rememberApplication = (id: string): void => tabStore.setItem(STORED, id);

export const forgetApplication = (): void => tabStore.removeItem(STORED);
