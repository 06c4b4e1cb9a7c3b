// The way in to a page that others wrote: the code in the address is traded for a cookie, and the address forgotten.

const code = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
const told = document.getElementById("told");
const answer = await fetch(location.pathname, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }) }).catch(() => null);
if (answer && answer.ok) location.replace("/");
else told.textContent = "This code is not, or no longer, good. Start git aynig serve again for another one.";
