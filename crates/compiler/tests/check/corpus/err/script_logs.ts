console.log("old")
