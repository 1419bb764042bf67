// The application that was used last in this tab. Pages that belong to no application show the navigation of this
// application.
import { tabStore } from '../api/storage.ts';

const STORAGE_KEY = 'berth.application';

export const recentApplication = (): string | undefined => tabStore.getItem(STORAGE_KEY) ?? undefined;

export const rememberApplication = (id: string): void => tabStore.setItem(STORAGE_KEY, id);

export const forgetApplication = (): void => tabStore.removeItem(STORAGE_KEY);
